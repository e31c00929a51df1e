"""What of ours there is for the rows of a printed table: from runs, benches and experiments.

Each number keeps its run, bench or experiment, its data, test set and signature. Nothing is shown that was not computed
from a run. It knows the papers' tables and who has a number, not how the two are told.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.config import TrainingConfig
from core_models.resources import data_folder
from core_models.settings import parse
from workbench.evaluation import bucketed_scores, scoring
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.experiments.grid import read_experiment
from workbench.papers import our_measurements
from workbench.papers.our_measurements import Record, records
from workbench.papers.presets import columns_with_values, rows_of, settings_of
from workbench.papers.schema import Row, Table
from workbench.store.runs import Run, RunError, trained_as

if TYPE_CHECKING:
    import pandas as pd

OURS = ["row", *our_measurements.FIELDS]
SPEEDS = ("train-speed", "decode-speed")
LENGTHS = "length-scores"  # the drawing of tables whose curves by length stand beside ours by length
_MADE_BY = {
    "aer": "workbench figure alignment-error --run {} --test TEST --option links=FILE",
    "cdr": "workbench adequacy {} --test TEST",
    "entropy": "workbench trace {} --test TEST --arrays '*.assignments'",
}
_SCORES = ".scores.csv"


def our_results(table: Table, runs: Sequence[Run], test: str, results: Path | None = None) -> pd.DataFrame:
    """What of ours stands in the rows of a table, of the measures that it prints: columns `OURS`; row is a row's key.

    A row has what the given runs of its system have; sizes and speeds that they have not are those of benches, speeds
    in the runs' logs come after these, and scores that no run has are those of experiments (both from `results`, the
    project's unless told). low and high: 95% bootstrap. Raises RunError where a run lacks the test set.
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


def _in_rows(table: Table, rows: Sequence[Row], found: Sequence[Record]) -> Iterator[Record]:
    """Records in those of the rows that print their measure (of their iteration)."""
    for row in rows:
        for one in found:
            if one["measure"] in _wanted(table, row) and one.get("iteration") == row.iteration:
                yield {**one, "row": row.key}


def _of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        if rows := rows_of(table, run.system):
            wanted = frozenset().union(*(_wanted(table, row) for row in rows))
            base = _base_run(table, rows[0], runs)
            scored = _by_length(table, run, test) if table.drawing == LENGTHS else _scores(run, test, wanted)
            yield from _in_rows(table, rows, [*scored, *our_measurements.of_run(run, base, test, wanted)])


def _base_run(table: Table, row: Row, runs: Sequence[Run]) -> Run | None:
    base = table.baseline_of(row)
    return next((run for run in runs if base is not None and base in rows_of(table, run.system)), None)


def _scores(run: Run, test: str, wanted: frozenset[str]) -> Iterator[Record]:
    scored = [metric for metric in METRIC_NAMES if metric in wanted]
    if scored:
        own = our_measurements.place(run, test)
        for score in records(scoring.score_table([run], test, scored)):
            yield {**score, **own, "measure": score["metric"]}


def _by_length(table: Table, run: Run, test: str) -> Iterator[Record]:
    known = {one.name for one in fields(bucketed_scores.Grouping)}
    grouping = bucketed_scores.Grouping(**{name: str(value) for name, value in table.options.items() if name in known})
    own = our_measurements.place(run, test)
    for metric in measures(table):
        found, _, said = bucketed_scores.tables([run], test, grouping, metric)
        own["signature"] = scoring.statistics(run, run.translations(test), metric).signature
        for row in records(found[found["n"] > 0]):
            yield {**row, **own, "measure": metric, "part": f"{said} {row['bucket']}"}


def _speeds_of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        rows = rows_of(table, run.system)
        base = _base_run(table, rows[0], runs) if rows else None
        if base is not None:
            yield from _in_rows(table, rows, list(our_measurements.speeds_of_run(run, base, test, frozenset(SPEEDS))))


def _of_benches(table: Table, results: Path) -> Iterator[Record]:
    wanted = frozenset(measure for measure in measures(table) if measure not in METRIC_NAMES)
    engines = our_measurements.benches(results) if wanted else []
    for engine in engines:
        if rows := rows_of(table, engine["system"]):
            base = _base_engine(table, rows[0], engine, engines)
            yield from _in_rows(table, rows, list(our_measurements.of_bench(engine, base, wanted)))


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
            for score in records(scores[scores["metric"].isin(wanted)]):
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
    """What the systems of an experiment are, by their names, and its language pair."""
    if not grid.is_file():
        return {}, ""
    found = read_experiment(grid)
    training = parse(TrainingConfig, found.settings(grid.parent, found.seeds[0]), str(grid))
    return {name: trained_as(system, training) for name, system in found.systems.items()}, found.data.languages


def missing_results(table: Table, runs: Sequence[Run], test: str, found: pd.DataFrame) -> dict[str, list[Run]]:
    """Commands ({} for the run) that compute what runs of the table's systems lack, and for which runs."""
    having = {(one["where"], one["measure"]) for one in records(found)}
    lacking = {}
    for measure, command in _MADE_BY.items():
        able = [run for run in runs if any(measure in _wanted(table, row) for row in rows_of(table, run.system))]
        if without := [run for run in able if (f"run {run.name}", measure) not in having]:
            lacking[command.replace("TEST", shlex.quote(test))] = without
    return lacking
