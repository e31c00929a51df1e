"""Our results for the rows of a published table: from runs, benches and experiments.

Each number keeps its run, bench or experiment, its data, test set and signature. All numbers were computed from runs.
Knows the papers' tables and the sources of numbers, not their presentation.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.config import TrainingConfig
from core_models.settings import parse
from workbench.evaluation import bucketed_scores, scoring
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.experiments.grid import read_experiment
from workbench.papers import our_measurements
from workbench.papers.experiment_differences import results_folder
from workbench.papers.presets import columns_with_values, rows_of, settings_of
from workbench.papers.records import Record, records
from workbench.papers.schema import Row, Table
from workbench.store.file_cache import KeptByFiles
from workbench.store.runs import Run, RunError, trained_as

if TYPE_CHECKING:
    import pandas as pd

OURS = ["row", *our_measurements.FIELDS]
SPEEDS = ("train-speed", "decode-speed")
LENGTHS = "length-scores"  # the figure of tables with curves by length, compared with ours by length
_MADE_BY = {
    "aer": "workbench figure alignment-error --run {} --test TEST --option links=FILE",
    "cdr": "workbench adequacy {} --test TEST",
    "entropy": "workbench trace {} --test TEST --arrays '*.assignments'",
}
_SCORES = ".scores.csv"
_SYSTEMS: KeptByFiles[tuple[dict[str, str], str]] = KeptByFiles(256)


def our_results(table: Table, runs: Sequence[Run], test: str, results: Path | None = None) -> pd.DataFrame:
    """Our results for the rows of a table, of the measures that it prints: columns `OURS`; row is a row's key.

    Results of the given runs come first, then sizes and speeds of benches, then speeds in the runs' logs, then scores
    of experiments (benches and experiments are in `results`, by default the project's). low and high: 95% bootstrap.
    Raises RunError if a run lacks the test set.
    """
    import pandas as pd

    results = results or results_folder()
    collected: list[Record] = []
    covered: set[tuple[str, str]] = set()
    for source in (
        _of_runs(table, runs, test),
        _of_benches(table, results),
        _speeds_of_runs(table, runs, test),
        _of_experiments(table, results),
    ):
        new = [record for record in source if (record["row"], record["measure"]) not in covered]
        covered |= {(record["row"], record["measure"]) for record in new}
        collected += new
    return pd.DataFrame(collected, columns=OURS).astype({"score": float, "low": float, "high": float})


def measures(table: Table) -> list[str]:
    """The measures that a table prints, or draws by length, and that can be computed for a run."""
    columns = table.columns if table.drawing == LENGTHS else columns_with_values(table)
    return list(dict.fromkeys(column.measure for column in columns if column.measure))


def _printed_measures(table: Table, row: Row) -> frozenset[str]:
    """The measures printed in a row."""
    if table.drawing == LENGTHS:
        return frozenset(measures(table))
    return frozenset(column.measure for column in table.columns if column.measure and column.key in row.values)


def _in_rows(table: Table, rows: Sequence[Row], measured: Sequence[Record]) -> Iterator[Record]:
    """Assign records to the rows that print their measure (of their iteration)."""
    for row in rows:
        for record in measured:
            if record["measure"] in _printed_measures(table, row) and record.get("iteration") == row.iteration:
                yield {**record, "row": row.key}


def _of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        if rows := rows_of(table, run.system):
            requested = frozenset().union(*(_printed_measures(table, row) for row in rows))
            base = _base_run(table, rows[0], runs)
            scored = _by_length(table, run, test) if table.drawing == LENGTHS else _scores(run, test, requested)
            yield from _in_rows(table, rows, [*scored, *our_measurements.run_records(run, base, test, requested)])


def _base_run(table: Table, row: Row, runs: Sequence[Run]) -> Run | None:
    base = table.baseline_of(row)
    return next((run for run in runs if base is not None and base in rows_of(table, run.system)), None)


def _scores(run: Run, test: str, requested: frozenset[str]) -> Iterator[Record]:
    scored = [metric for metric in METRIC_NAMES if metric in requested]
    if scored:
        origin = our_measurements.origin_fields(run, test)
        for score in records(scoring.score_table([run], test, scored)):
            yield {**score, **origin, "measure": score["metric"]}


def _by_length(table: Table, run: Run, test: str) -> Iterator[Record]:
    known = {field.name for field in fields(bucketed_scores.Grouping)}
    grouping = bucketed_scores.Grouping(**{name: str(value) for name, value in table.options.items() if name in known})
    origin = our_measurements.origin_fields(run, test)
    for metric in measures(table):
        table_by_length, _, description = bucketed_scores.tables([run], test, grouping, metric)
        origin["signature"] = scoring.statistics(run, run.translations(test), metric).signature
        for row in records(table_by_length[table_by_length["n"] > 0]):
            yield {**row, **origin, "measure": metric, "part": f"{description} {row['bucket']}"}


def _speeds_of_runs(table: Table, runs: Sequence[Run], test: str) -> Iterator[Record]:
    for run in runs:
        rows = rows_of(table, run.system)
        base = _base_run(table, rows[0], runs) if rows else None
        if base is not None:
            yield from _in_rows(table, rows, list(our_measurements.speed_records(run, base, test, frozenset(SPEEDS))))


def _of_benches(table: Table, results: Path) -> Iterator[Record]:
    requested = frozenset(measure for measure in measures(table) if measure not in METRIC_NAMES)
    engines = our_measurements.benchmark_engines(results) if requested else []
    for engine in engines:
        if rows := rows_of(table, engine["system"]):
            base = _base_engine(table, rows[0], engine, engines)
            yield from _in_rows(table, rows, list(our_measurements.benchmark_records(engine, base, requested)))


def _base_engine(table: Table, row: Row, engine: Record, engines: Sequence[Record]) -> Record | None:
    """The engine of the row's baseline, measured together with this one and in the same size."""
    base = table.baseline_of(row)
    same_conditions = (other for other in engines if other["conditions"] == engine["conditions"])
    settings = settings_of(engine["system"])
    same_size = (other for other in same_conditions if settings_of(other["system"]) <= settings)
    return next((other for other in same_size if base is not None and base in rows_of(table, other["system"])), None)


def _of_experiments(table: Table, results: Path) -> Iterator[Record]:
    import pandas as pd

    metrics = [measure for measure in measures(table) if measure in METRIC_NAMES]
    for path in sorted(results.glob(f"*{_SCORES}")) if metrics and table.drawing != LENGTHS else ():
        name = path.name.removesuffix(_SCORES)
        systems, languages = experiment_systems(results.parent / f"{name}.yaml")
        try:
            scores = pd.read_csv(path)
            for score in records(scores[scores["metric"].isin(metrics)]):
                system = str(systems.get(score["system"], score["system"]))
                seeds = f"{score['seeds']} seed{'s' if score['seeds'] > 1 else ''}"
                origin = {
                    "system": system,
                    "where": f"experiment {name}, {seeds}",
                    "data": name,
                    "languages": languages,
                }
                record = {**score, **origin, "measure": score["metric"]}
                yield from _in_rows(table, rows_of(table, system), [record])
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path}: not the scores of an experiment ({error}); write them again: workbench experiment table"
            ) from None


def experiment_systems(grid: Path) -> tuple[dict[str, str], str]:
    """The systems of an experiment by name, and its language pair. Not to be changed: they are kept."""
    return _SYSTEMS.get(grid, (grid,), lambda: _read_systems(grid))


def _read_systems(grid: Path) -> tuple[dict[str, str], str]:
    if not grid.is_file():
        return {}, ""
    experiment = read_experiment(grid)
    systems = {}
    for name, system in experiment.systems.items():
        settings = experiment.settings(grid.parent, name, experiment.seeds[0])
        systems[name] = trained_as(system, parse(TrainingConfig, settings, str(grid)))
    return systems, experiment.data.languages


def missing_results(table: Table, runs: Sequence[Run], test: str, ours: pd.DataFrame) -> dict[str, list[Run]]:
    """Commands ({} for the run) that compute missing results of the table's systems, with the runs that lack them."""
    present = {(record["where"], record["measure"]) for record in records(ours)}
    lacking = {}
    for measure, command in _MADE_BY.items():
        compatible_runs = [
            run for run in runs if any(measure in _printed_measures(table, row) for row in rows_of(table, run.system))
        ]
        if runs_without := [run for run in compatible_runs if (f"run {run.name}", measure) not in present]:
            lacking[command.replace("TEST", shlex.quote(test))] = runs_without
    return lacking
