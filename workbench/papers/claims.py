"""Claims of a paper's tables: what a system gains over its baseline, as reported and by our experiments.

A claim is a row of a system with a printed score, against the plain backbone above it in the same table. Ours are the
differences of experiments in which the two differ by nothing else, with 95% intervals. Knows the papers' tables and
result files; trains and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses.scores import LOWER_IS_BETTER
from core_models.resources import data_folder
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.papers.our_measurements import records
from workbench.papers.our_results import experiment_systems
from workbench.papers.presets import rows_of, settings_of
from workbench.papers.schema import Paper, Row, Table
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

BACKBONES = ("transformer", "rnnsearch")
HOLDS, REFUTED, UNDECIDED, MIXED, NOT_TRIED = "holds", "refuted here", "undecided", "differs by data", "not tried here"
REPORTED = ["claim", "label", "base", "measure", "gain", "table", "data"]
MEASURED = ["claim", "measure", "data", "test", "seeds", "score", "gain", "low", "high", "verdict"]
_COMPARISONS = ".comparisons.csv"


def reported_gains(paper: Paper) -> pd.DataFrame:
    """Every reported gain over a plain backbone: columns `REPORTED`, gain in points, above 0 if better.

    Rows of the same system, settings and measure are one claim, whichever table they are in.
    """
    import pandas as pd

    rows = [
        {
            "claim": _key(row, base, str(column.measure)),
            "label": row.label,
            "base": base.label,
            "measure": column.measure,
            "gain": float(row.values[column.key] - base.values[column.key]) * _sign(str(column.measure)),
            "table": table.id.replace("-", " ", 1).capitalize(),
            "data": column.label if len(table.columns) > 1 else table.data,
        }
        for table, row, base in _pairs(paper)
        for column in table.columns
        if column.measure in METRIC_NAMES and column.key in row.values and column.key in base.values
    ]
    return pd.DataFrame(rows, columns=REPORTED)


def measured_gains(paper: Paper, results: Path | None = None) -> pd.DataFrame:
    """The differences of our experiments (by default the project's) for the claims of a paper: columns `MEASURED`.

    Raises RunError for a file that is no comparison of an experiment.
    """
    import pandas as pd

    directions = reported_gains(paper).groupby("claim")["gain"].mean()
    pairs = list(_pairs(paper))
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in comparison_files(results):
        name = path.name.removesuffix(_COMPARISONS)
        systems, _ = experiment_systems(path.parents[1] / f"{name}.yaml")
        for record in _differences(path):
            if not {record["system"], record["baseline"]} <= systems.keys():
                continue
            system, baseline = systems[record["system"]], systems[record["baseline"]]
            for claim in _claims(pairs, system, baseline, record["metric"]):
                if claim in directions.index:
                    gain = _measured(claim, name, record, float(directions[claim]))
                    found.setdefault((claim, name, gain["test"]), gain)
    return pd.DataFrame(found.values(), columns=MEASURED)


def comparison_files(results: Path | None = None) -> list[Path]:
    """The files with differences of experiments, by default the project's."""
    return sorted((results or data_folder() / "experiments" / "results").glob(f"*{_COMPARISONS}"))


def _pairs(paper: Paper) -> Iterator[tuple[Table, Row, Row]]:
    """The rows of the paper's own systems, each with the plain backbone that it is compared with."""
    for table in paper.tables:
        for place, row in enumerate(table.rows):
            base = next((other for other in reversed(table.rows[:place]) if _is_base(other, row)), None)
            is_own = row.system not in ("", *BACKBONES) and not row.cited and row.iteration is None
            if is_own and base is not None:
                yield table, row, base


def _is_base(row: Row, of: Row) -> bool:
    """Return True for a plain backbone that has no setting but those of the compared row."""
    settings, compared = settings_of(f":{row.settings}"), settings_of(f":{of.settings}")
    return row.system in BACKBONES and not row.cited and settings <= compared


def _key(row: Row, base: Row, measure: str) -> str:
    systems = (":".join(filter(None, (one.system, one.settings))) for one in (row, base))
    return f"{' over '.join(systems)}, {measure}"


def _claims(pairs: Iterable[tuple[Table, Row, Row]], system: str, baseline: str, measure: str) -> set[str]:
    """The claims that a difference of two systems is about: they differ in what the rows say and in nothing else."""
    differs = settings_of(system) - settings_of(baseline)
    return {
        _key(row, base, measure)
        for table, row, base in pairs
        if differs <= settings_of(f":{row.settings}")
        and row in rows_of(table, system)
        and base in rows_of(table, baseline)
    }


def _differences(path: Path) -> Iterator[dict[str, Any]]:
    """The differences of an experiment that have an interval; those over seeds before those of one training."""
    import pandas as pd

    try:
        table = pd.read_csv(path)
        table = table[table["metric"].isin(list(METRIC_NAMES))].dropna(subset=["low", "high"])
        yield from records(table.sort_values("seeds", ascending=False, kind="stable"))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path}: not the comparisons of an experiment ({error}); write them again: workbench experiment table"
        ) from None


def _measured(claim: str, data: str, record: dict[str, Any], direction: float) -> dict[str, Any]:
    sign = _sign(record["metric"])
    low, high = sorted((sign * record["low"], sign * record["high"]))
    return {
        "claim": claim,
        "measure": record["metric"],
        "data": data,
        "test": str(record.get("test", "test")),
        "seeds": int(record["seeds"]),
        "score": float(record["score"]),
        "gain": sign * float(record["delta"]),
        "low": low,
        "high": high,
        "verdict": verdict(low, high, direction),
    }


def _sign(measure: str) -> int:
    return -1 if measure.upper() in LOWER_IS_BETTER else 1


def verdict(low: float, high: float, direction: float = 1.0) -> str:
    """Whether an interval of a gain holds the reported direction, refutes it, or leaves it open because it holds 0."""
    if low <= 0 <= high:
        return UNDECIDED
    return HOLDS if (low > 0) == (direction > 0) else REFUTED


def overall(measured: pd.DataFrame) -> str:
    """The verdict of a claim over all data sets (rows of `measured_gains`): that of those that decide, if they agree.

    One training says little of a system, so it counts only where no data set has several seeds, and is said.
    """
    if measured.empty:
        return NOT_TRIED
    counted = counting(measured)
    decided = set(counted["verdict"]) - {UNDECIDED}
    found = UNDECIDED if not decided else MIXED if len(decided) > 1 else decided.pop()
    return found if counted["seeds"].max() > 1 else f"{found} (one training)"


def counting(measured: pd.DataFrame) -> pd.DataFrame:
    """The differences that count for the verdict: those over several seeds, or all if there is none."""
    several = measured[measured["seeds"] > 1]
    return measured if several.empty else several


def claim_table(reported: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """One row a claim: claim (in words), reported (gains by table), ours (the differences that count), verdict."""
    import pandas as pd

    rows = []
    for claim, gains in reported.groupby("claim", sort=False):
        first, mine = gains.iloc[0], measured[measured["claim"] == claim]
        relation = "better" if gains["gain"].mean() > 0 else "worse"
        rows.append(
            {
                "claim": f"{first['label']}: {relation} {METRIC_NAMES[first['measure']]} than {first['base']}",
                "reported": "; ".join(_gains_in_words(gains)),
                "ours": "; ".join(_ours_in_words(mine)),
                "verdict": overall(mine),
            }
        )
    return pd.DataFrame(rows, columns=["claim", "reported", "ours", "verdict"])


def _gains_in_words(gains: pd.DataFrame) -> Iterator[str]:
    """The reported gains table by table, as a range where there are several."""
    for table, part in gains.groupby("table", sort=False):
        low, high = part["gain"].min(), part["gain"].max()
        shown = f"{low:+.2f}" if len(part) == 1 else f"{low:+.2f} to {high:+.2f}"
        yield f"{shown} ({table})".replace("-", "−")


def _ours_in_words(measured: pd.DataFrame) -> Iterator[str]:
    """Our differences that count, and how many more there are."""
    counted = counting(measured)
    yield from map(_gain_in_words, records(counted))
    if left_out := len(measured) - len(counted):
        yield f"and {left_out} of one training"


def _gain_in_words(record: dict[str, Any]) -> str:
    seeds = f"{record['seeds']} seed{'s' * (record['seeds'] > 1)}"
    numbers = f"{record['gain']:+.2f} [{record['low']:+.2f}, {record['high']:+.2f}]".replace("-", "−")
    return f"{numbers} {record['data']}, {record['test']}, {seeds}"
