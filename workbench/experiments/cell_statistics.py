"""The statistics per segment of a grid's finished cells, from runs that are here and from cells that are kept.

All tables of a grid are made of them (`results`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from core_models.config import SearchConfig
from core_models.settings import parse
from workbench.experiments import kept_segments
from workbench.experiments.grid import Cell, Experiment, cells, training_key
from workbench.experiments.kept_segments import Kept
from workbench.store.runs import Run, open_run

if TYPE_CHECKING:
    from analyses.scores import Statistics


class Text(NamedTuple):
    """Of a test set: the sources, and the references, a list each."""

    sources: Sequence[str]
    references: Sequence[Sequence[str]]


class TestSetStatistics(NamedTuple):
    """The statistics of a test set by a metric, by system and seed; text: None if it is not here."""

    test: str
    metric: str
    step: int | None
    text: Text | None
    statistics: dict[str, dict[int, Statistics]]


def update_kept(experiment: Experiment, root: Path, path: Path, metrics: Sequence[str]) -> Kept:
    """The statistics of all finished cells that are here, and of those that a file has; writes both into the file.

    A cell that was made with other settings than the grid has now is left out: they would be stored as its own.
    Raises ConfigError for a file of something else, of other references, or of other settings of training or search.
    """
    here: Kept = {}
    made_here: dict[kept_segments.Cell, kept_segments.Made] = {}
    tests = {}
    made = {system: _made(experiment, system, parse(SearchConfig, experiment.search)) for system in experiment.systems}
    changed = {(cell.system, cell.seed) for cell in cells(experiment, root) if cell.changes()}
    for test in experiment.data.test_names:
        runs = dict(_runs(experiment, root, test, None))
        if text := _text(experiment, root, test, runs):
            tests[test] = kept_segments.towards(text.references)
        for metric in metrics:
            for system, by_seed in _statistics(runs, test, metric).items():
                for seed, one in by_seed.items():
                    if (system, seed) in changed:
                        continue
                    cell = kept_segments.Cell(system, seed, test, metric)
                    here[cell] = one
                    made_here[cell] = _made(experiment, system, runs[system][seed].config.search)
    kept = {**kept_segments.read(path, tests, made), **here}
    if here:
        kept_segments.write(path, kept, tests, made_here)
    return kept


def _made(experiment: Experiment, system: str, search: SearchConfig) -> kept_segments.Made:
    searched = json.dumps(search.model_dump(exclude_defaults=True), sort_keys=True)
    return {"trained": training_key(experiment, system), "searched": searched}


def statistics_by_test(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str],
    kept: Kept | None,
    steps: Sequence[int | None] = (None,),
) -> Iterator[TestSetStatistics]:
    """Test by test, metric by metric, step by step; kept cells count beside those of the last step (None)."""
    for test in experiment.data.test_names:
        runs_at = {step: dict(_runs(experiment, root, test, step)) for step in steps}
        text = _text(experiment, root, test, runs_at[None])
        for metric in metrics:
            for step, runs in runs_at.items():
                statistics = _statistics(runs, test, metric)
                if step is None:
                    statistics = _with_kept(experiment, statistics, kept, test, metric)
                yield TestSetStatistics(test, metric, step, text, statistics)


def named(system: str, step: int | None) -> str:
    """A system, or its checkpoint at a step as SYSTEM@step."""
    return system if step is None else f"{system}@{step}"


def _runs(experiment: Experiment, root: Path, test: str, step: int | None) -> Iterator[tuple[str, dict[int, Run]]]:
    """The runs (or their checkpoints) that can be scored on a test set, by system: seed -> run."""
    for system in experiment.systems:
        system_cells = (cell for cell in cells(experiment, root) if cell.system == system)
        if runs_by_seed := {
            cell.seed: run for cell in system_cells if (run := _scorable(cell, test, step)) is not None
        }:
            yield named(system, step), runs_by_seed


def _scorable(cell: Cell, test: str, step: int | None) -> Run | None:
    if step is None:
        return open_run(cell.folder) if cell.state == "done" else None
    if not (cell.folder / "checkpoints" / f"step-{step:06d}.safetensors").is_file():
        return None
    run = open_run(f"{cell.folder}@{step}")
    return run if test in run.tests() else None


def _text(experiment: Experiment, root: Path, test: str, runs: Mapping[str, Mapping[int, Run]]) -> Text | None:
    """The text of a test set: what a cell here has translated, else what is prepared for the grid's trainings."""
    from core_models.text.parallel import TextError
    from core_models.text.prepared import Prepared

    for run in (run for by_seed in runs.values() for run in by_seed.values()):
        translated = run.translations(test).test_set
        return Text(translated.sources, translated.all_references)
    try:
        text = Prepared.open(root / experiment.name / "data").test(test)
    except TextError:
        return None
    return Text(text.sources, [text.targets or []])


def _statistics(runs: dict[str, dict[int, Run]], test: str, metric: str) -> dict[str, dict[int, Statistics]]:
    from workbench.evaluation.scoring import references, statistics

    opened = {run.reference: run.translations(test) for by_seed in runs.values() for run in by_seed.values()}
    if opened:
        references(opened)  # refuses runs that were tested on different sentences
    return {
        system: {seed: statistics(run, opened[run.reference], metric) for seed, run in by_seed.items()}
        for system, by_seed in runs.items()
    }


def _with_kept(
    experiment: Experiment, statistics: dict[str, dict[int, Statistics]], kept: Kept | None, test: str, metric: str
) -> dict[str, dict[int, Statistics]]:
    """The statistics by system and seed, with those of cells that are not here, in the experiment's order."""
    both, kept = {}, kept or {}
    for system in experiment.systems:
        elsewhere = {seed: kept.get(kept_segments.Cell(system, seed, test, metric)) for seed in experiment.seeds}
        by_seed = {**{seed: one for seed, one in elsewhere.items() if one is not None}, **statistics.get(system, {})}
        if by_seed:
            both[system] = dict(sorted(by_seed.items()))
    return both
