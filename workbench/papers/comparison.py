"""Comparison of a published table with our results: in short, line by line with differences, and origins.

Our results are of other data than the paper's, so each line says if language pair or scoring differ from the printed
ones. Knows the papers' tables and the records of `our_results`; measures and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.evaluation.scoring import METRIC_NAMES
from workbench.papers.our_results import SPEEDS, measures
from workbench.papers.records import Record, records
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
_LINE = ["row", "measure", "ours", "low", "high", "reported", "where", "ran as", "data", "test", "differs", "signature"]


def reported(table: Table, ours: pd.DataFrame) -> pd.DataFrame:
    """The table as printed, with our results in short.

    Columns: row, system with its settings, one for each label, cited, ours. The column `ours` is left out if the table
    prints nothing that is measured here.
    """
    as_printed = table.printed()
    as_printed["system"] = [":".join(filter(None, (row.system, row.settings))) for row in table.rows]
    as_printed = as_printed.drop(columns="settings")
    if not measures(table):
        return as_printed
    return as_printed.assign(ours=[_short(table, row, ours[ours["row"] == row.key]) for row in table.rows])


def _short(table: Table, row: Row, mine: pd.DataFrame) -> str:
    """Our numbers by measure, or a note that there are none."""
    texts = []
    for measure in measures(table):
        scores = [f"{score:.2f}" for score in mine.loc[mine["measure"] == measure, "score"]]
        texts += [f"{MEASURE_NAMES[measure]} {', '.join(scores)}"] if scores else []
    return "; ".join(texts) or _absent(table, row)


def compared(table: Table, ours: pd.DataFrame) -> pd.DataFrame:
    """One line for each of our numbers, with the reported numbers of the same measure.

    Columns: row, measure, ours, low, high, reported (speeds as ratios to the baseline's), its origin, and differences
    to the reported number.
    """
    import pandas as pd

    order = measures(table)
    lines = []
    for row in table.rows:
        mine = sorted(records(ours[ours["row"] == row.key]), key=lambda record: order.index(record["measure"]))
        lines += [{"row": row.label, **_line(table, row, record)} for record in mine]
    return pd.DataFrame(lines, columns=_LINE)


def _line(table: Table, row: Row, record: Record) -> dict[str, Any]:
    """The line of one of our numbers."""
    part = f", {record['part']}" if _is_text(record["part"]) else ""
    return {
        "measure": f"{MEASURE_NAMES[record['measure']]}{part}",
        "ours": record["score"],
        "low": record["low"],
        "high": record["high"],
        "reported": ", ".join(_printed(table, row, record)),
        "ran as": record["system"],
        "differs": "; ".join(_differences(table, row, record)),
        **{name: record[name] if _is_text(record[name]) else "" for name in ("where", "data", "test", "signature")},
    }


def _is_text(value: Any) -> bool:
    """Return True for a non-empty text."""
    return isinstance(value, str) and value != ""


def _columns(table: Table, row: Row, record: Record) -> list[Column]:
    """The printed columns to compare with one of our numbers: of its measure, and of its languages if there are any."""
    columns = [column for column in table.columns if column.measure == record["measure"] and column.key in row.values]
    return [column for column in columns if table.languages_of(column) == record["languages"]] or columns


def _printed(table: Table, row: Row, record: Record) -> Iterator[str]:
    """The printed numbers to compare with, speeds as ratios to the baseline's, with column labels if several."""
    columns = _columns(table, row, record)
    for column in columns:
        ratio = relative(table, row, column) if column.measure in SPEEDS else None
        value = str(row.values[column.key]) if ratio is None else f"{ratio:.2f}"
        yield f"{value} ({column.label})" if len(columns) > 1 else value


def relative(table: Table, row: Row, column: Column) -> float | None:
    """The ratio of a row's printed number to its baseline's; None if either is missing."""
    base = table.baseline_of(row)
    if base is None or column.key not in row.values.keys() & base.values.keys():
        return None
    return float(row.values[column.key] / base.values[column.key])


def _differences(table: Table, row: Row, record: Record) -> Iterator[str]:
    """Differences to the printed number other than the data, and notes on our measurement."""
    columns = _columns(table, row, record)
    pairs = {table.languages_of(column) for column in columns} - {""}
    if _is_text(record["languages"]) and pairs and record["languages"] not in pairs:
        yield f"{record['languages']}, reported {' and '.join(sorted(pairs))}"
    if record["measure"] in METRIC_NAMES:
        yield from dict.fromkeys(filter(None, (_counted(column, record["signature"]) for column in columns)))
    if _is_text(record["how"]):
        yield record["how"]


def _counted(column: Column, signature: str) -> str:
    """The variant of our metric if the printed column has another one, else ""."""
    fields = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
    case, variant = _CASE.get(fields.get("case", ""), ""), column.unit.partition(", ")[2]
    counted = " ".join(filter(None, (case, "sacreBLEU")))
    return "" if variant in ("", "detokenised", case) else f"{counted}; reported {variant}"


def _absent(table: Table, row: Row) -> str:
    """The note for a row without our results: see the paper's own row of the system, or not run here."""
    twins = (other for other in table.rows if (other.system, other.settings) == (row.system, row.settings))
    return SEE_OWN if row.cited and any(not twin.cited for twin in twins) and row.system else NOT_HERE


def origins(ours: pd.DataFrame) -> str:
    """The origins of our numbers in short: runs, benches and experiments by their data and test sets.

    `compared` has the system of each.
    """
    tests_of_source: dict[str, dict[str, list[str]]] = {}
    for record in records(ours):
        tests = tests_of_source.setdefault(record["where"], {}).setdefault(record["data"], [])
        tests.extend([record["test"]] * bool(record["test"]))
    sources: dict[str, list[str]] = {}
    for where, by_data in tests_of_source.items():
        description = "; ".join(", ".join((f"data {data}", *_tests(tests))) for data, tests in by_data.items())
        sources.setdefault(description, []).append(where)
    return "; ".join(f"{', '.join(names)} ({description})" for description, names in sources.items())


def _tests(names: list[str]) -> list[str]:
    """Test sets in words, each once."""
    return [f"test set {name}" for name in dict.fromkeys(names)]
