"""Work through a grid: train each cell, translate and trace its test sets.

Any number of processes may run the same grid at once, on one machine or on several that share the folder: a cell
belongs to the process that holds its lock, and the others skip it. `launcher` starts the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import Timeout

from workbench.evaluation.distributed import world
from workbench.experiments.data import Say, prepare_data
from workbench.experiments.grid import Cell, Experiment, cells
from workbench.experiments.grid_precision import with_precision
from workbench.experiments.train import Report, new_run, train
from workbench.store.runs import Run, RunError, open_run

TRACES = ("log_prob", "future_cost.*")
LOCK_SECONDS = 1.0  # longer than a test whether a cell is locked


def run_cell(cell: Cell, data: Path, report: Report | None, device: str, minutes: float | None) -> bool:
    """Train a cell as far as time allows, then translate its tests; returns True if it is done."""
    experiment = cell.experiment
    if cell.problem is not None:
        raise RunError(f"{cell.problem}; mend the run or remove its folder")
    if cell.state == "missing":
        settings = with_precision(cell, data, device)
        new_run(cell.folder, experiment.systems[cell.system], data, settings, experiment.search)
    run = open_run(cell.folder)
    if cell.state == "begun":
        train(run, report, device, minutes)
    if cell.state == "trained":
        _translate(cell, run, device)
    return cell.state == "done"


def _translate(cell: Cell, run: Run, device: str) -> None:
    import core_models
    from core_models.devices import resolved
    from workbench.evaluation.translate import test_set, trace_test, translate_test

    experiment = cell.experiment
    translator = core_models.load(run.folder, resolved(device))
    for name in experiment.data.test_names:
        if name not in run.tests():
            test, truth = test_set(run, name)
            translate_test(run, test, truth, trees=name == experiment.inspect, translator=translator)
        if name == experiment.inspect and cell.untraced(run):
            trace_test(run, run.translations(name), TRACES, translator=translator)


def check_systems(experiment: Experiment) -> None:
    """Refuse an unknown system now, not after hours of training the others."""
    from core_models.system_spec import describe

    for system in experiment.systems.values():
        describe(system)


def run_experiment(
    experiment: Experiment,
    root: Path,
    files: Path | None,
    say: Say,
    report: Callable[[str], Report] | None = None,
    device: str = "auto",
    minutes: float | None = None,
    only: Sequence[str] = (),
) -> None:
    """Run every cell that is not done, one after another; `minutes` bounds each cell's training in this call.

    Cells of other processes are skipped. A failing cell stops no other; a RunError at the end reports failures.
    """
    if world() > 1:
        raise RunError("an experiment trains a cell in one process; with torchrun train one run: workbench resume RUN")
    chosen = cells(experiment, root, only)
    check_systems(experiment)
    data = prepare_data(experiment, root, files, say)
    failed: list[Exception] = []
    for cell in chosen:
        try:
            if cell.state != "done":
                with cell.lock().acquire(timeout=LOCK_SECONDS):
                    run_cell(cell, data, report(cell.name) if report else None, device, minutes)
            say(f"{cell.folder}: {cell.state_text()}")
        except Timeout:
            say(f"{cell.folder}: another process is at it")
        except (ValueError, RuntimeError, OSError, MemoryError) as error:
            say(f"{cell.folder}: failed: {error}")
            failed.append(error)
    if failed:
        raise RunError(
            f"{len(failed)} of {len(chosen)} cells failed, the others went as far as they could; the first: {failed[0]}"
        ) from failed[0]
