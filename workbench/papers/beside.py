"""What of ours stands beside the rows of a printed table: from runs, benches and experiments, and how it differs.

Ours comes from other data than the paper's, so each number keeps its run, bench or experiment, its data, test set and
signature, and says where language pair or way of counting are not the printed ones. Nothing is shown that was not
computed from a run. It knows the papers' tables and who has a number, and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.resources import data_folder
from workbench import buckets, evaluation
from workbench.evaluation import METRIC_NAMES
from workbench.experiments.grid import read_experiment
from workbench.papers import measured
from workbench.papers.measured import Record
from workbench.papers.presets import columns_with_values, rows_of, settings_of
from workbench.papers.reading import Column, Row, Table
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

NOT_HERE = "not run here"
SEE_OWN = "see the paper's own row"
OURS = ["row", *measured.FIELDS]
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
SPEEDS = ("train-speed", "decode-speed")
LENGTHS = "length-scores"  # the drawing of tables whose curves by length stand beside ours by length
_CASE = {"mixed": "case-sensitive", "lc": "case-insensitive"}
_MADE_BY = {
    "aer": "workbench figure alignment-error --run {} --test TEST --set links=FILE",
    "cdr": "workbench adequacy {} --test TEST",
    "entropy": "workbench trace {} --test TEST --names '*.assignments'",
}
_SCORES = ".scores.csv"


def ours(table: Table, runs: Sequence[Run], test: str, results: Path | None = None) -> pd.DataFrame:
    """What of ours stands in the rows of a table, of the measures that it prints: columns `OURS`; row is a row's key.

    A row has what the given runs of its system have; sizes and speeds that they have not are those of benches, speeds
    in the runs' logs come after these, and scores that no run has are those of experiments (both from `results`, the
    project's unless told). low and high: 95 % bootstrap. Raises RunError where a run lacks the test set.
    """
    import pandas as pd

    results = results or data_folder() / "experiments" / "results"
    found: list[Record] = []
    covered: set[tuple[str, str]] = set()
    for one_kind in (
        _of_runs(table, runs, test),
        _of_benches(table, results),
        _speeds_of_runs(table, runs, test),
        _of_experiments(table, results),
    ):
        new = [one for one in one_kind if (one["row"], one["measure"]) not in covered]
        covered |= {(one["row"], one["measure"]) for one in new}
        found += new
    return pd.DataFrame(found, columns=OURS).astype({"score": float, "low": float, "high": float})


def measures(table: Table) -> list[str]:
    """The measures that a table prints, or draws by length, and that can be had of a run."""
    columns = table.columns if table.drawing == LENGTHS else columns_with_values(table)
    return list(dict.fromkeys(column.measure for column in columns if column.measure))


def _wanted(table: Table, row: Row) -> frozenset[str]:
    """The measures of a row: those that are printed there."""
    if table.drawing == LENGTHS:
        return frozenset(measures(table))
    return frozenset(column.measure for column in table.columns if column.measure and column.key in row.values)


def _in_rows(table: Table, rows: Sequence[Row], records: Sequence[Record]) -> Iterator[Record]:
    """Records in those of the rows that print their measure (of their iteration)."""
    for row in rows:
        for one in records:
            if one["measure"] in _wanted(table, row) and one.get("iteration") == row.iteration:
                yield {**one, "row": row.key}


def _of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        if rows := rows_of(table, run.system):
            wanted = frozenset().union(*(_wanted(table, row) for row in rows))
            base = _base_run(table, rows[0], runs)
            scored = _by_length(table, run, test) if table.drawing == LENGTHS else _scores(run, test, wanted)
            yield from _in_rows(table, rows, [*scored, *measured.of_run(run, base, test, wanted)])


def _base_run(table: Table, row: Row, runs: Sequence[Run]) -> Run | None:
    base = table.baseline_of(row)
    return next((run for run in runs if base is not None and base in rows_of(table, run.system)), None)


def _scores(run: Run, test: str, wanted: frozenset[str]) -> Iterator[Record]:
    scored = [metric for metric in METRIC_NAMES if metric in wanted]
    if scored:
        own = measured.place(run, test)
        for score in _records(evaluation.score_table([run], test, scored)):
            yield {**score, **own, "measure": score["metric"]}


def _by_length(table: Table, run: Run, test: str) -> Iterator[Record]:
    known = {one.name for one in fields(buckets.Grouping)}
    grouping = buckets.Grouping(**{name: str(value) for name, value in table.options.items() if name in known})
    own = measured.place(run, test)
    for metric in measures(table):
        found, _, said = buckets.tables([run], test, grouping, metric)
        own["signature"] = evaluation.statistics(run, run.translations(test), metric).signature
        for row in _records(found[found["n"] > 0]):
            yield {**row, **own, "measure": metric, "part": f"{said} {row['bucket']}"}


def _speeds_of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        rows = rows_of(table, run.system)
        base = _base_run(table, rows[0], runs) if rows else None
        if base is not None:
            yield from _in_rows(table, rows, list(measured.speeds_of_run(run, base, test, frozenset(SPEEDS))))


def _of_benches(table: Table, results: Path) -> Iterator[Record]:
    wanted = frozenset(measure for measure in measures(table) if measure not in METRIC_NAMES)
    engines = measured.benches(results) if wanted else []
    for engine in engines:
        if rows := rows_of(table, engine["system"]):
            base = _base_engine(table, rows[0], engine, engines)
            yield from _in_rows(table, rows, list(measured.of_bench(engine, base, wanted)))


def _base_engine(table: Table, row: Row, engine: Record, engines: Sequence[Record]) -> Record | None:
    """The engine of the row's baseline that was measured with this one, in the same size."""
    base = table.baseline_of(row)
    alike = (other for other in engines if other["conditions"] == engine["conditions"])
    own = settings_of(engine["system"])
    same_size = (other for other in alike if settings_of(other["system"]) <= own)
    return next((other for other in same_size if base is not None and base in rows_of(table, other["system"])), None)


def _of_experiments(table: Table, results: Path) -> Iterator[Record]:
    import pandas as pd

    wanted = [measure for measure in measures(table) if measure in METRIC_NAMES]
    for path in sorted(results.glob(f"*{_SCORES}")) if wanted and table.drawing != LENGTHS else ():
        name = path.name.removesuffix(_SCORES)
        systems, languages = _experiment(results.parent / f"{name}.yaml")
        try:
            scores = pd.read_csv(path)
            for score in _records(scores[scores["metric"].isin(wanted)]):
                system = str(systems.get(score["system"], score["system"]))
                seeds = f"{score['seeds']} seed{'s' if score['seeds'] > 1 else ''}"
                own = {"system": system, "where": f"experiment {name}, {seeds}", "data": name, "languages": languages}
                record = {**score, **own, "measure": score["metric"]}
                yield from _in_rows(table, rows_of(table, system), [record])
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path}: not the scores of an experiment ({error}); write them again: workbench experiment table"
            ) from None


def _experiment(grid: Path) -> tuple[dict[str, str], str]:
    """The systems of an experiment by their names, and its language pair."""
    if not grid.is_file():
        return {}, ""
    found = read_experiment(grid)
    return found.systems, found.data.languages


def _records(table: pd.DataFrame) -> list[Record]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def to_make(table: Table, runs: Sequence[Run], test: str, found: pd.DataFrame) -> dict[str, list[Run]]:
    """Commands ({} for the run) that compute what runs of the table's systems lack, and for which runs."""
    having = {(one["where"], one["measure"]) for one in _records(found)}
    lacking = {}
    for measure, command in _MADE_BY.items():
        able = [run for run in runs if any(measure in _wanted(table, row) for row in rows_of(table, run.system))]
        if without := [run for run in able if (f"run {run.name}", measure) not in having]:
            lacking[command.replace("TEST", test)] = without
    return lacking


def printed(table: Table, found: pd.DataFrame) -> pd.DataFrame:
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


def beside(table: Table, found: pd.DataFrame) -> pd.DataFrame:
    """A line for each number of ours: row, measure, ours, low, high, the printed numbers of the same measure (speeds as
    ratios to the baseline's), where it is from, and what is not as printed about it."""
    import pandas as pd

    order = measures(table)
    lines = []
    for row in table.rows:
        mine = sorted(_records(found[found["row"] == row.key]), key=lambda one: order.index(one["measure"]))
        lines += [{"row": row.label, **_said(table, row, one)} for one in mine]
    return pd.DataFrame(lines, columns=_LINE)


_LINE = ["row", "measure", "ours", "low", "high", "printed", "where", "ran as", "data", "test", "differs", "signature"]


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
    """Where numbers of ours are from, in words: run, bench or experiment, system, data, test set, measures."""
    told: dict[tuple[str, ...], list[str]] = {}
    for one in _records(found):
        key = (
            f"{one['where']} ({one['system']})",
            f"data {one['data']}",
            f"test set {one['test']}" * bool(one["test"]),
        )
        told.setdefault(key, []).append(MEASURE_NAMES[one["measure"]])
    return "; ".join(", ".join(filter(None, (*key, *dict.fromkeys(names)))) for key, names in told.items())
