"""The findings of a paper's file: what is reported of orders, curves, properties and costs, and what ours say of it.

A finding names its result files, so that what answers it, and in which setting, stands in the paper's file. Gives rows
of the columns of `claims`; the verdict is computed there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.papers.arithmetic_checks import evaluate
from workbench.papers.experiment_differences import (
    COMPARISONS,
    difference,
    former_default,
    results_folder,
    seed_error,
)
from workbench.papers.learning_rates import better_rate
from workbench.papers.load import library
from workbench.papers.our_results import experiment_systems
from workbench.papers.schema import Measurement, Paper, resolve
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

REPEATED_TRAINING, REPEATED_MEASUREMENT = "training", "measurement"


def reported_findings(paper: Paper) -> Iterator[dict[str, Any]]:
    """The findings as rows of `claims.REPORTED`."""
    for finding in paper.findings:
        gain = evaluate(finding.reported, lambda reference: float(resolve(reference, paper, library())))
        yield {
            "claim": f"finding/{finding.id}",
            "kind": finding.kind,
            "says": finding.what,
            "label": finding.what,
            "base": "",
            "measure": finding.unit,
            "gain": gain,
            "share": finding.share,
            "printed": ("more" if gain > 0 else "less") if finding.direction_only else "",
            "without": finding.without,
            "table": finding.where,
            "data": "",
        }


def measured_findings(paper: Paper, results: Path | None = None) -> Iterator[dict[str, Any]]:
    """What answers the findings, as rows of `claims.MEASURED` without their verdict.

    Raises RunError for a file, a system or a column that is not there.
    """
    for finding in paper.findings:
        for ours in finding.ours:
            folder = results or results_folder()
            row = _of_experiment(ours, folder) if ours.experiment else _of_file(ours, folder)
            yield {
                "claim": f"finding/{finding.id}",
                "measure": finding.unit,
                "data": ours.setting or ours.experiment or ours.file,
                "note": _note(ours, folder),
                "test": ours.test if ours.experiment else "",
                "repeat": REPEATED_MEASUREMENT if ours.rows == "rounds" else REPEATED_TRAINING,
                "tuned": _tuned(ours, folder),
                "groups": (),
                "left_out": 0,
                **row,
            }


def _note(ours: Measurement, folder: Path) -> str:
    """The former default that a difference of an experiment was trained with, if it has changed since."""
    if not ours.experiment:
        return ""
    systems, _ = experiment_systems(_grid(ours, folder))
    return former_default(ours.experiment, *(systems.get(name, name) for name in (ours.system, ours.baseline)))


def _grid(ours: Measurement, folder: Path) -> Path:
    """The file of its experiment, which the name of a result file begins with; it lies beside the results' folder."""
    name = ours.experiment or ours.file.rpartition(".")[0]
    while "." in name and not (folder.parent / f"{name}.yaml").is_file():
        name = name.rpartition(".")[0]
    return folder.parent / f"{name}.yaml"


def _tuned(ours: Measurement, folder: Path) -> bool:
    """Whether no learning rate is known to be better for what it is measured of, and for what that stands beside."""
    grid = _grid(ours, folder)
    systems, _ = experiment_systems(grid)
    if not systems:
        return True
    first = next(iter(systems))
    if ours.experiment:
        return better_rate(grid, ours.system, ours.baseline) is None
    names = {**{description: name for name, description in systems.items()}, **{name: name for name in systems}}
    system = names.get(str(ours.where.get("system")), first)
    # A stored difference is to the grid's first system; a property less a number or a rule is of one system.
    baseline = ours.baseline or (system if ours.minus else first)
    if isinstance(ours.minus, Mapping):
        baseline = names.get(str(ours.minus.get("system")), baseline)
    return better_rate(grid, system, baseline) is None


def _of_experiment(ours: Measurement, folder: Path) -> dict[str, Any]:
    path = folder / f"{ours.experiment}{COMPARISONS}"
    if not path.is_file():
        raise RunError(f"{path}: there are no comparisons of this experiment")
    row = difference(path, ours.system, ours.baseline, ours.metric, ours.test)
    return {"gain": row["delta"], **{name: row[name] for name in ("seeds", "low", "high", "seed_error")}}


def _of_file(ours: Measurement, folder: Path) -> dict[str, Any]:
    """The rows of a file, each less the other's or a number: their mean, and an interval over seeds or rounds."""
    import pandas as pd

    path = folder / f"{ours.file}.csv"
    if not path.is_file():
        raise RunError(f"{path}: there is no such result file")
    table = pd.read_csv(path)
    rows = _chosen(table, ours.where, path)
    if missing := [name for name in (ours.value, *_bounds(ours)) if name not in table]:
        raise RunError(f"{path}: there is no column {missing[0]!r}")
    values = rows[ours.value].to_numpy(dtype=float)
    errors = (rows[ours.high] - rows[ours.low]).to_numpy(dtype=float) / 2 if _bounds(ours) else 0 * values
    if isinstance(ours.minus, Decimal):
        values = values - float(ours.minus)
    else:
        other = _chosen(table, ours.minus, path)
        if len(other) != len(rows) or ("seed" in rows and rows["seed"].tolist() != other["seed"].tolist()):
            raise RunError(f"{path}: rows of {ours.where} and of {ours.minus} are no pairs")
        others = other[ours.value].to_numpy(dtype=float)
        values = values - others
        if _bounds(ours):
            errors = (errors**2 + ((other[ours.high] - other[ours.low]).to_numpy(dtype=float) / 2) ** 2) ** 0.5
        if ours.of_rest:
            values, errors = (100 * numbers / (1 - others) for numbers in (values, errors))
    if ours.rows == "rounds":
        return _over_rounds(rows, ours.value)
    if len(values) > 1 and "seed" not in rows:
        raise RunError(f"{path}: there are {len(values)} rows of {dict(ours.where)}, and no seeds that tell them apart")
    if len(values) == 1:
        seeds = int(rows["seeds"].iloc[0]) if "seeds" in rows else 1
        low, high = float(values[0] - errors[0]), float(values[0] + errors[0])
        if isinstance(ours.minus, Decimal):  # an interval need not lie evenly around its value
            low, high = (float(rows[name].iloc[0]) - float(ours.minus) for name in (ours.low, ours.high))
        of_one = isinstance(ours.minus, Decimal) and "seed_error" in rows
        error = float(rows["seed_error"].iloc[0]) if of_one else seed_error([], seeds)
        row = {"gain": float(values[0]), "low": low, "high": high, "seeds": seeds, "seed_error": error}
        return {**row, **_groups(table, ours, path)}
    return _over_seeds(values, errors)


def _groups(table: pd.DataFrame, ours: Measurement, path: Path) -> dict[str, Any]:
    """Of a least difference of groups (`analyses.buckets`), what those of all groups are; else nothing."""
    from analyses.buckets import LEAST_ROWS

    least = ours.where.get("bucket")
    if least not in LEAST_ROWS:
        return {}
    if ours.minus or ours.value != "delta":
        raise RunError(f"{path}: a least difference of groups stands in the column delta, with nothing subtracted")
    rows = _chosen(table, {name: value for name, value in ours.where.items() if name != "bucket"}, path)
    groups = rows.dropna(subset=["low_edge"])[["delta", "low", "high", "seed_error"]]
    return {"groups": tuple(groups.itertuples(index=False, name=None)), "left_out": LEAST_ROWS.index(least)}


def _over_rounds(rows: pd.DataFrame, value: str) -> dict[str, Any]:
    """The mean of measurements, and the range of their rounds: of all, where rows have their lowest and highest."""
    lows, highs = (rows.get(f"{value}_{end}", rows[value]).fillna(rows[value]) for end in ("low", "high"))
    return {
        "gain": float(rows[value].mean()),
        "low": float(lows.min()),
        "high": float(highs.max()),
        "seeds": int(rows["rounds"].sum()) if "rounds" in rows else len(rows),
        "seed_error": math.nan,
    }


def _over_seeds(values: Any, half_widths: Any) -> dict[str, Any]:
    """The mean of several trainings; all were tested on the same words, so the mean has as large an error of them."""
    from analyses.power import interval, sentence_error

    by_seed = [float(value) for value in values]
    low, high = interval(by_seed, sentence_error(float(half_widths.mean()), 1, 0.0))
    count = len(by_seed)
    center, error = sum(by_seed) / count, seed_error(by_seed, count)
    return {"gain": center, "low": low, "high": high, "seeds": count, "seed_error": error}


def _bounds(ours: Measurement) -> list[str]:
    return [] if ours.rows == "rounds" else [ours.low, ours.high]


def _chosen(table: pd.DataFrame, where: Mapping[str, str | int], path: Path) -> pd.DataFrame:
    """The rows in which columns have these values, numbers and texts, by seed.

    Raises RunError if there is none, and if there are several of one seed.
    """
    import pandas as pd

    rows = table
    for column, value in where.items():
        if column not in table:
            raise RunError(f"{path}: there is no column {column!r}")
        number = isinstance(value, int)  # beside cells without a number it stands there as 3.0
        rows = rows[(pd.to_numeric(rows[column], errors="coerce") if number else rows[column].astype(str)) == value]
    if rows.empty:
        raise RunError(f"{path}: there is no row of {dict(where)}")
    if "seed" in rows:
        if rows["seed"].duplicated().any():
            raise RunError(f"{path}: there are several rows of one seed of {dict(where)}")
        rows = rows.sort_values("seed", kind="stable")
    return rows
