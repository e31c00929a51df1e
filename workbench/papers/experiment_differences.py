"""Differences of two systems of an experiment, from its result files, with what seeds bring to their error.

Reads EXPERIMENT.comparisons.csv, where each system stands beside the experiment's baseline, EXPERIMENT.pairs.csv, where
it stands beside every other one, and EXPERIMENT.cells.csv, where each training stands by itself. Trains and scores
nothing.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from core_models.resources import data_folder
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.papers.records import records
from workbench.store.file_cache import KeptByFiles
from workbench.store.runs import RunError

COMPARISONS, PAIRS, CELLS = ".comparisons.csv", ".pairs.csv", ".cells.csv"
Scores = dict[tuple[str, str, str], dict[int, float]]  # of a system by a metric on a test set: seed -> score
_DIFFERENCES: KeptByFiles[list[dict[str, Any]]] = KeptByFiles(256)
_SCORES: KeptByFiles[Scores] = KeptByFiles(256)


def results_folder() -> Path:
    """The project's result files."""
    return data_folder() / "experiments" / "results"


def comparison_files(results: Path | None = None) -> list[Path]:
    """The files with differences of experiments, by default the project's."""
    return sorted((results or results_folder()).glob(f"*{COMPARISONS}"))


def former_default(experiment: str, *systems: str) -> str:
    """What default of that time the results of these systems were trained with, if it has changed since; else "".

    systems: as their experiment describes them, beginning with a name of the catalogue.
    """
    known = _former_defaults().get(experiment, {})
    names = [system.partition(":")[0] for system in systems]
    return ", ".join(dict.fromkeys(value for start, value in known.items() if any(n.startswith(start) for n in names)))


def uncounted(experiment: str, system: str) -> bool:
    """Whether the ledger leaves out a system's gain over the grid's baseline, for the reason in uncounted.toml."""
    return system in _uncounted().get(experiment, [])


@cache
def _uncounted() -> dict[str, list[str]]:
    return tomllib.loads((data_folder() / "experiments" / "uncounted.toml").read_text(encoding="utf-8"))


@cache
def _former_defaults() -> dict[str, dict[str, str]]:
    return tomllib.loads((data_folder() / "experiments" / "former_defaults.toml").read_text(encoding="utf-8"))


def stored_differences(path: Path) -> list[dict[str, Any]]:
    """The differences in a file of comparisons or pairs that have an interval, one a pair of systems and test.

    With `seed_error`. Those over seeds stand for those of one training. Not to be changed: the list is
    kept while the files are unchanged.
    Raises RunError for a file that is no comparison of an experiment.
    """
    return _DIFFERENCES.get(path, (path, _beside(path, CELLS)), lambda: _read_differences(path))


def _read_differences(path: Path) -> list[dict[str, Any]]:
    import pandas as pd

    try:
        table = pd.read_csv(path)
        table = table[table["metric"].isin(list(METRIC_NAMES))].dropna(subset=["low", "high"])
        table = table.assign(test=table.get("test", "test"))
        table = table.sort_values("seeds", ascending=False, kind="stable")
        rows = records(table.drop_duplicates(["system", "baseline", "metric", "test"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path}: not the comparisons of an experiment ({error}); write them again: workbench experiment table"
        ) from None
    scores = _scores(path)
    by_seed = (list(_differences_of(row, scores).values()) for row in rows)
    return [{**row, "seed_error": seed_error(one, int(row["seeds"]))} for row, one in zip(rows, by_seed, strict=True)]


def seed_error(by_seed: Sequence[float], seeds: int) -> float:
    """The standard error of the mean between seeds: 0 of one training, NaN if not all of them are at hand."""
    import numpy as np

    if seeds == 1:
        return 0.0
    return float(np.std(by_seed, ddof=1)) / math.sqrt(seeds) if len(by_seed) == seeds else math.nan


def difference(path: Path, system: str, baseline: str, metric: str, test: str) -> dict[str, Any]:
    """The difference of any two systems of an experiment: delta, low, high, seeds, seed_error.

    It is the stored one, of comparisons or else of pairs. Where no pairs are stored, seeds are paired, and the error of
    the sentences is that of both differences to the experiment's baseline together, which is too large rather than too
    small: both share the baseline's, and fewer seeds are taken to average less of it. Raises RunError for systems that
    are not there.
    """
    from analyses.power import interval

    pairs = _beside(path, PAIRS)
    for file in (path, pairs) if pairs.is_file() else (path,):
        for row in stored_differences(file):
            if (row["metric"], row["test"]) != (metric, test):
                continue
            if (row["system"], row["baseline"]) == (system, baseline):
                return row
            if (row["system"], row["baseline"]) == (baseline, system):
                return {**row, "delta": -row["delta"], "low": -row["high"], "high": -row["low"]}
    stored = {row["system"]: row for row in stored_differences(path) if (row["metric"], row["test"]) == (metric, test)}
    if missing := sorted({system, baseline} - stored.keys()):
        raise RunError(f"{path}: no difference of {missing[0]!r} by {metric} on {test}")
    scores = _scores(path)
    by_seed = list(_by_seed(scores, system, baseline, metric, test).values())
    count = len(by_seed)
    errors = [_sentence_error(stored[name], count) for name in (system, baseline)]
    low, high = interval(by_seed, math.hypot(*errors))
    return {"delta": sum(by_seed) / count, "low": low, "high": high, "seeds": count,
            "seed_error": seed_error(by_seed, count)}  # fmt: skip


def _sentence_error(row: Mapping[str, Any], count: int) -> float:
    """The error of the sentences of a stored difference, were it one of `count` seeds, at most as many as it has."""
    from analyses.power import sentence_error

    seeds, error = int(row["seeds"]), float(row["seed_error"])
    of_sentences = sentence_error((row["high"] - row["low"]) / 2, seeds, 0.0 if math.isnan(error) else error)
    return of_sentences * math.sqrt(max(1.0, seeds / count))


def _beside(path: Path, ending: str) -> Path:
    """Another file of the experiment of a file of comparisons or pairs."""
    return path.with_name(path.name.removesuffix(COMPARISONS).removesuffix(PAIRS) + ending)


def _scores(path: Path) -> Scores:
    """The scores of all trainings of the experiment of a file; none if they are not there."""
    file = _beside(path, CELLS)
    return _SCORES.get(file, (file,), lambda: _read_scores(file))


def _read_scores(file: Path) -> Scores:
    import pandas as pd

    if not file.is_file():
        return {}
    found: Scores = {}
    for row in records(pd.read_csv(file).dropna(subset=["score"])):
        found.setdefault((row["system"], row["metric"], row["test"]), {})[int(row["seed"])] = float(row["score"])
    return found


def _differences_of(row: Mapping[str, Any], scores: Scores) -> dict[int, float]:
    return _by_seed(scores, row["system"], row["baseline"], row["metric"], row["test"])


def _by_seed(scores: Scores, system: str, baseline: str, metric: str, test: str) -> dict[int, float]:
    """System minus baseline of each seed that both were trained with."""
    ours, theirs = (scores.get((name, metric, test), {}) for name in (system, baseline))
    return {seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())}
