"""Grids of systems and seeds from a YAML file: each cell a run that can be resumed, partial results visible.

    ROOT/NAME/data/   ROOT/NAME/SYSTEM/ (one seed) or ROOT/NAME/SYSTEM.seed-2/

Knows the file and the folders; training, translating and scoring are done where they always are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from core_models.config import SearchConfig, Section, TrainingConfig, parse, read_yaml
from workbench.demo import TRACES
from workbench.runs import Run, RunError, open_run
from workbench.training import Report, finished, new_run, train

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[str, str]


class DataFiles(Section):
    """Files of an experiment, relative to the folder given on the command line."""

    languages: str = ""
    pieces: int = Field(8000, gt=0)
    kind: str = "unigram"
    joint: bool = True
    train: Pair
    dev: Pair
    tests: dict[str, Pair]


class Experiment(Section):
    name: str
    data: DataFiles
    systems: dict[str, str]
    seeds: tuple[int, ...] = (1,)
    training: dict[str, Any]
    search: dict[str, Any] = {}
    inspect: str | None = Field(None, description="test set whose beam trees and traces are kept")


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    experiment: Experiment
    system: str
    seed: int
    folder: Path

    @property
    def state(self) -> str:
        """missing, begun, trained (some test or trace is still to do) or done."""
        if not (self.folder / "config.yaml").is_file():
            return "missing"
        if not finished(self.folder):
            return "begun"
        run = open_run(self.folder)
        whole = set(self.experiment.data.tests) <= set(run.tests()) and not self.untraced(run)
        return "done" if whole else "trained"

    def untraced(self, run: Run) -> bool:
        """Is the trace of the inspected test set still to be made? A system without mechanisms has none."""
        inspect = self.experiment.inspect
        traced = inspect is None or (run.folder / "traces" / inspect / "index.json").is_file()
        return bool(run.config.model.mechanisms) and not traced


def read_experiment(path: Path) -> Experiment:
    """Read and check a grid, its training and search settings included; raises ConfigError."""
    experiment = parse(Experiment, read_yaml(path), str(path))
    parse(TrainingConfig, experiment.training, f"{path}: training")
    parse(SearchConfig, experiment.search, f"{path}: search")
    if experiment.inspect is not None and experiment.inspect not in experiment.data.tests:
        raise RunError(
            f"{path}: inspect: {experiment.inspect!r} is none of its tests: {', '.join(experiment.data.tests)}"
        )
    return experiment


def cells(experiment: Experiment, root: Path) -> Iterator[Cell]:
    """The runs of the grid, in order."""
    for seed in experiment.seeds:
        for system in experiment.systems:
            name = system if len(experiment.seeds) == 1 else f"{system}.seed-{seed}"
            yield Cell(experiment, system, seed, root / experiment.name / name)


def prepare_data(experiment: Experiment, root: Path, files: Path | None) -> Path:
    """The prepared text of an experiment, made from `files` where it is not there yet."""
    from core_models.text.binary import Prepared, prepare
    from core_models.text.parallel import TextError, read_parallel

    folder = root / experiment.name / "data"
    try:
        Prepared.open(folder)
        return folder
    except TextError:
        if files is None:
            raise RunError(
                f"{experiment.name}: its text is not prepared yet; give the folder of its files with --data"
            ) from None
    data = experiment.data

    def read(pair: Pair, name: str) -> Any:
        return read_parallel(files / pair[0], files / pair[1], name=name)

    tests = {name: read(pair, name) for name, pair in data.tests.items()}
    source, _, target = data.languages.partition("-")
    prepare(
        folder,
        read(data.train, "train"),
        read(data.dev, "dev"),
        tests,
        data.pieces,
        data.kind,
        data.joint,
        source,
        target,
    )
    return folder


def run_cell(cell: Cell, data: Path, report: Report | None, device: str, minutes: float | None) -> bool:
    """Train a cell as far as time allows and, when it is trained, translate its tests; True when it is done."""
    experiment = cell.experiment
    if cell.state == "missing":
        new_run(
            cell.folder,
            experiment.systems[cell.system],
            data,
            {**experiment.training, "seed": cell.seed},
            experiment.search,
        )
    run = open_run(cell.folder)
    if cell.state == "begun":
        train(run, report, device, minutes)
    if cell.state == "trained":
        _translate(cell, run, device)
    return cell.state == "done"


def _translate(cell: Cell, run: Run, device: str) -> None:
    import core_models
    from workbench.evaluation import test_set, trace_test, translate_test

    experiment, where = cell.experiment, "cpu" if device == "auto" else device
    translator = core_models.load(run.folder, where)
    for name in experiment.data.tests:
        if name not in run.tests():
            test, truth = test_set(run, name)
            translate_test(run, test, truth, trees=name == experiment.inspect, translator=translator)
        if name == experiment.inspect and cell.untraced(run):
            trace_test(run, run.translations(name), TRACES, translator=translator)


def run_experiment(
    experiment: Experiment,
    root: Path,
    files: Path | None,
    say: Callable[[str], None],
    report: Callable[[str], Report] | None = None,
    device: str = "auto",
    minutes: float | None = None,
) -> None:
    """Run every cell that is not done, one after another; `minutes` bounds each cell's training in this call."""
    from core_models.systems import describe

    for system in experiment.systems.values():
        describe(system)  # refuse an unknown one now, not after hours of training the others
    data = prepare_data(experiment, root, files)
    for cell in cells(experiment, root):
        if cell.state != "done":
            run_cell(cell, data, report(cell.folder.name) if report else None, device, minutes)
        say(f"{cell.folder}: {cell.state}")


def table(experiment: Experiment, root: Path, metrics: tuple[str, ...] = ("bleu", "chrf")) -> pd.DataFrame:
    """Scores of the cells that are done, tests as rows; cells that are missing stand there with their state."""
    import pandas as pd

    from workbench.evaluation import score_table

    rows = []
    for cell in cells(experiment, root):
        place = {"system": cell.system, "seed": cell.seed, "state": cell.state}
        if cell.state != "done":
            rows.append(place)
            continue
        run = open_run(cell.folder)
        for test in experiment.data.tests:
            found = score_table([run], test, metrics)
            rows += [{**place, "test": test, **dict(row)} for _, row in found.drop(columns="system").iterrows()]
    return pd.DataFrame(rows)
