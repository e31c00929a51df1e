"""A printed table beside ours: in short, line by line with what differs, and where ours is from.

Ours comes from other data than the paper's, so each line says where language pair or way of counting are not the
printed ones. It knows the papers' tables and the numbers that `our_results` found; it measures and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.evaluation.scoring import METRIC_NAMES
from workbench.papers.our_measurements import Record, records
from workbench.papers.our_results import SPEEDS, measures
from workbench.papers.schema import Column, Row, Table

if TYPE_CHECKING:
    import pandas as pd

NOT_HERE = "not run here"
SEE_OWN = "see the paper's own row"
MEASURE_NAMES = {
    **METRIC_NAMES,
    "parameters": "Parameters (M)",
    "parameters-without-embeddings": "Parameters without embeddings (M)",
    "parameters-added": "Added parameters (M)",
    "train-speed": "Training speed (× baseline)",
    "decode-speed": "Decoding speed (× baseline)",
    "aer": "AER (%)",
    "cdr": "CDR",
    "over": "Over-translation (proxy, %)",
    "under": "Under-translation (proxy, %)",
    "entropy": "Entropy (nats)",
    "diversity": "Diversity (1 − cosine)",
}
_CASE = {"mixed": "case-sensitive", "lc": "case-insensitive"}
_LINE = ["row", "measure", "ours", "low", "high", "printed", "where", "ran as", "data", "test", "differs", "signature"]


def reported(table: Table, found: pd.DataFrame) -> pd.DataFrame:
    """The table as printed: row, system with its settings, a column by each label, cited, and what of ours stands there
    in short; a table that prints nothing we measure has no column of ours."""
    as_printed = table.printed()
    as_printed["system"] = [":".join(filter(None, (row.system, row.settings))) for row in table.rows]
    as_printed = as_printed.drop(columns="settings")
    if not measures(table):
        return as_printed
    return as_printed.assign(ours=[_short(table, row, found[found["row"] == row.key]) for row in table.rows])


def _short(table: Table, row: Row, mine: pd.DataFrame) -> str:
    """The numbers of ours by their measures; that there is none."""
    told = []
    for measure in measures(table):
        scores = [f"{score:.2f}" for score in mine.loc[mine["measure"] == measure, "score"]]
        told += [f"{MEASURE_NAMES[measure]} {', '.join(scores)}"] if scores else []
    return "; ".join(told) or _absent(table, row)


def compared(table: Table, found: pd.DataFrame) -> pd.DataFrame:
    """A line for each number of ours: row, measure, ours, low, high, the printed numbers of the same measure (speeds as
    ratios to the baseline's), where it is from, and what is not as printed about it."""
    import pandas as pd

    order = measures(table)
    lines = []
    for row in table.rows:
        mine = sorted(records(found[found["row"] == row.key]), key=lambda one: order.index(one["measure"]))
        lines += [{"row": row.label, **_said(table, row, one)} for one in mine]
    return pd.DataFrame(lines, columns=_LINE)


def _said(table: Table, row: Row, one: Record) -> dict[str, Any]:
    """What is said of a number of ours."""
    part = f", {one['part']}" if _is(one["part"]) else ""
    return {
        "measure": f"{MEASURE_NAMES[one['measure']]}{part}",
        "ours": one["score"],
        "low": one["low"],
        "high": one["high"],
        "printed": ", ".join(_printed(table, row, one)),
        "ran as": one["system"],
        "differs": "; ".join(_differences(table, row, one)),
        **{name: one[name] if _is(one[name]) else "" for name in ("where", "data", "test", "signature")},
    }


def _is(value: Any) -> bool:
    """Is there a text?"""
    return isinstance(value, str) and value != ""


def _columns(table: Table, row: Row, one: Record) -> list[Column]:
    """The printed columns that a number of ours stands beside: of its measure, and of its languages where there are."""
    columns = [column for column in table.columns if column.measure == one["measure"] and column.key in row.values]
    return [column for column in columns if table.languages_of(column) == one["languages"]] or columns


def _printed(table: Table, row: Row, one: Record) -> Iterator[str]:
    """The numbers printed there, speeds as ratios to the baseline's, with their column where there are several."""
    columns = _columns(table, row, one)
    for column in columns:
        ratio = relative(table, row, column) if column.measure in SPEEDS else None
        value = str(row.values[column.key]) if ratio is None else f"{ratio:.2f}"
        yield f"{value} ({column.label})" if len(columns) > 1 else value


def relative(table: Table, row: Row, column: Column) -> float | None:
    """What a row prints over what its baseline prints there; None where either prints nothing."""
    base = table.baseline_of(row)
    if base is None or not {row.key, base.key} <= {one.key for one in table.rows if column.key in one.values}:
        return None
    return float(row.values[column.key] / base.values[column.key])


def _differences(table: Table, row: Row, one: Record) -> Iterator[str]:
    """What is not as printed, other data apart, and how ours was measured."""
    columns = _columns(table, row, one)
    pairs = {table.languages_of(column) for column in columns} - {""}
    if _is(one["languages"]) and pairs and one["languages"] not in pairs:
        yield f"{one['languages']}, printed {' and '.join(sorted(pairs))}"
    if one["measure"] in METRIC_NAMES:
        yield from dict.fromkeys(filter(None, (_counted(column, one["signature"]) for column in columns)))
    if _is(one["how"]):
        yield one["how"]


def _counted(column: Column, signature: str) -> str:
    """How the metric was counted, where the printed column says something else."""
    told = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
    case, variant = _CASE.get(told.get("case", ""), ""), column.unit.partition(", ")[2]
    counted = " ".join(filter(None, (case, "sacreBLEU")))
    return "" if variant in ("", "detokenised", case) else f"{counted}; printed {variant}"


def _absent(table: Table, row: Row) -> str:
    """What is said where nothing of ours stands beside a row: ours stands beside the paper's own row, or nowhere."""
    twins = (other for other in table.rows if (other.system, other.settings) == (row.system, row.settings))
    return SEE_OWN if row.cited and any(not twin.cited for twin in twins) and row.system else NOT_HERE


def origins(found: pd.DataFrame) -> str:
    """Where numbers of ours are from, in short: runs, benches and experiments by their data and test sets; what each of
    them ran as stands in `compared`."""
    told: dict[str, dict[str, list[str]]] = {}
    for one in records(found):
        told.setdefault(one["where"], {}).setdefault(one["data"], []).extend([one["test"]] * bool(one["test"]))
    alike: dict[str, list[str]] = {}
    for where, by_data in told.items():
        said = "; ".join(", ".join((f"data {data}", *_tests(tests))) for data, tests in by_data.items())
        alike.setdefault(said, []).append(where)
    return "; ".join(f"{', '.join(places)} ({said})" for said, places in alike.items())


def _tests(names: list[str]) -> list[str]:
    """Test sets in words, each once."""
    return [f"test set {name}" for name in dict.fromkeys(names)]
