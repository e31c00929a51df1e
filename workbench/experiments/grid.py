"""The grid of an experiment: its file, its cells, and their progress.

    ROOT/NAME/data/   ROOT/NAME/SYSTEM/ (one seed) or ROOT/NAME/SYSTEM.seed-2/   ROOT/NAME/.SYSTEM.lock

A cell is one system with one seed: a run that can be resumed. Knows the file, the folders and the locks; `runner` does
the work in a cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import Field, model_validator

from core_models.config import ModelConfig, RunConfig, SearchConfig, TrainingConfig, read_config
from core_models.files.run_files import RECORD, read_json
from core_models.settings import ConfigError, Section, nearest, parse, read_yaml
from workbench.experiments.train import finished
from workbench.store.file_cache import KeptByFiles
from workbench.store.runs import Run, RunError, open_run
from workbench.store.search_settings import search_of

Pair = tuple[str, str]
# Training settings that change files and messages, not the result.
BOOKKEEPING = {"max_minutes", "keep_last", "keep_every", "log_every", "tensorboard"}
# Characters that a folder's name cannot contain, or end with, on some file system.
_NO_NAME = re.compile(r"""[\x00-\x1f<>:"/\\|?*]|[. ]$""")
_STEPS: KeptByFiles[tuple[int, int | None]] = KeptByFiles(4096)  # by the log of a training


class ControlledText(Section):
    """A controlled corpus to be generated: numbers of sentences of each split, and its own seed.

    Its test sets are `test` and, if `long` is positive, `long`: sentences of more than 25 words only.
    """

    sentences: int = Field(gt=0)
    dev: int = Field(gt=0)
    test: int = Field(gt=0)
    long: int = Field(0, ge=0)
    seed: int = Field(1, ge=0)
    config: dict[str, Any] = Field({}, description="keys of data/controlled/config.yaml that are other here")

    @property
    def test_names(self) -> list[str]:
        return ["test", "long"] if self.long else ["test"]


TEXT_SETTINGS = "data.json"  # beside a grid's prepared text: the settings that it was prepared with
PACKAGED = "package:"  # before the name of a file of the package's data folder


class DataFiles(Section):
    """Text files of an experiment, or a controlled corpus instead.

    Files are relative to the folder of the command line; `package:` before a name means the package's data folder.
    """

    languages: str = ""
    pieces: int = Field(8000, gt=0)
    kind: str = "unigram"
    joint: bool = True
    controlled: ControlledText | None = None
    train: Pair | None = None
    dev: Pair | None = None
    tests: dict[str, Pair] = {}

    @model_validator(mode="after")
    def _one_origin(self) -> DataFiles:
        files = (self.train, self.dev, self.tests)
        if not (all(files) if self.controlled is None else not any(files)):
            raise ValueError("give either train, dev and tests, or controlled")
        return self

    @property
    def test_names(self) -> list[str]:
        return list(self.tests) if self.controlled is None else self.controlled.test_names


class Experiment(Section):
    name: str
    data: DataFiles
    systems: dict[str, str] = Field(min_length=1, description="the first is the baseline of comparisons")
    seeds: tuple[int, ...] = Field((1,), min_length=1)
    training: dict[str, Any]
    search: dict[str, Any] = {}
    begin_from: str | dict[str, str] | None = Field(
        None,
        description="a run below the runs folder that cells begin from, or one for each system that begins from a run; "
        "{seed} in its name is the cell's seed",
    )
    inspect: str | None = Field(None, description="test set whose beam trees and traces are kept")

    @model_validator(mode="after")
    def _known_beginners(self) -> Experiment:
        beginners = self.begin_from if isinstance(self.begin_from, dict) else {}
        for system in beginners.keys() - self.systems.keys():
            raise ValueError(f"begin_from: there is no system {system!r}; {nearest(system, list(self.systems))}")
        return self

    def settings(self, root: Path, system: str, seed: int) -> dict[str, Any]:
        """The training settings of a cell, with its seed and the run it begins from; root: the runs folder."""
        first = self.begin_from.get(system) if isinstance(self.begin_from, dict) else self.begin_from
        begins = {} if first is None else {"init_from": str((root / first.replace("{seed}", str(seed))).resolve())}
        return {**self.training, **begins, "seed": seed}

    def text_changes(self, root: Path) -> list[str]:
        """Settings in which the text that is prepared below the runs folder and the grid differ, if they are known."""
        try:
            prepared = read_json(root / self.name / TEXT_SETTINGS, RECORD)
        except (OSError, ValueError):  # text of an earlier version, or none
            return []
        now = self.data.model_dump(mode="json")
        return [
            f"data.{key} {value}, now {now[key]}" for key, value in prepared.items() if value != now.get(key, value)
        ]


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    experiment: Experiment
    system: str
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def state(self) -> str:
        """One of missing, broken, begun, trained (some test or trace is still to do) and done."""
        if not (self.folder / "config.yaml").is_file():
            return "missing"
        if self.problem is not None:
            return "broken"
        if not finished(self.folder):
            return "begun"
        run = open_run(self.folder)
        complete = set(self.experiment.data.test_names) <= set(run.tests()) and not self.untraced(run)
        return "done" if complete else "trained"

    @property
    def problem(self) -> str | None:
        """The problem of the existing run; None without a problem or without a run."""
        try:
            self._open()
        except RunError as error:
            return str(error).replace("\n", "; ")
        return None

    @property
    def trained_precision(self) -> str:
        """The precision in which the existing run trains; "" without a run or before it was decided."""
        run = None if self.problem else self._open()
        return "" if run is None else run.precision

    def _open(self) -> Run | None:
        return open_run(self.folder) if (self.folder / "config.yaml").is_file() else None

    def untraced(self, run: Run) -> bool:
        """Return True if the trace of the inspected test set is still to be made."""
        inspect = self.experiment.inspect
        return inspect is not None and not run.traced(inspect)

    def steps(self) -> tuple[int, int | None]:
        """The numbers of updates done and planned (None: unknown before the training starts)."""
        run = None if self.problem else self._open()
        if run is None:
            return 0, self.training.max_steps
        step, planned = _STEPS.get(run.log, (run.log,), lambda: _logged_steps(run))
        return step, planned or self.training.max_steps

    def state_text(self) -> str:
        """The state in words: progress of training, whether it is running, settings that differ from the grid."""
        if self.problem is not None:
            return f"broken: {self.problem}"
        state, (step, steps) = self.state, self.steps()
        far = f", step {step}" + (f" of {steps}" if steps else "") if state == "begun" else ""
        changes = self.changes()
        changed = f"; made with other settings: {', '.join(changes)}" if changes else ""
        return state + far + (", running" if self.locked() else "") + changed

    @cached_property
    def training(self) -> TrainingConfig:
        return parse(TrainingConfig, self.settings, "training")

    @property
    def settings(self) -> dict[str, Any]:
        """The training settings from the grid, the cell's seed and the run that it begins from."""
        return self.experiment.settings(self.folder.parents[1], self.system, self.seed)

    def changes(self) -> list[str]:
        """Settings with an effect on the result in which the existing run and the grid differ."""
        run = None if self.problem else self._open()
        if run is None:
            return []
        config, description = run.config, self.experiment.systems[self.system]
        trained = config.training.model_copy(update={"precision": run.precision or config.training.precision})
        differences = [f"system {config.system}, now {description}"] if not _same_model(config, description) else []
        search = parse(SearchConfig, self.experiment.search, "search")
        for name, run_settings, now in (
            ("training.", trained, self.training),
            ("search.", config.search, search),
        ):
            pairs = [
                (key, getattr(run_settings, key), value)
                for key, value in now
                if key not in BOOKKEEPING and value != "auto"
            ]
            differences += [
                f"{name}{key} {run_value}, now {value}" for key, run_value, value in pairs if run_value != value
            ]
        return differences + self._search_changes(run, search) + self.experiment.text_changes(self.folder.parents[1])

    def _search_changes(self, run: Run, search: SearchConfig) -> list[str]:
        """Settings of the search that translated a test set in which it differs from the grid's."""
        differences, now = [], search.model_dump()
        for test in self.experiment.data.test_names:
            searched = search_of(run, test) if test in run.tests() else {}
            differences += [
                f"{test} translated with {key} {value}, now {now[key]}"
                for key, value in searched.items()
                if value not in (now.get(key, value), getattr(run.config.search, key, value))
            ]
        return differences

    def lock(self) -> FileLock:
        """The lock of the process that works on this cell; the system releases it when the process ends."""
        return FileLock(self.folder.with_name(f".{self.name}.lock"))

    def locked(self) -> bool:
        lock = self.lock()
        if not Path(lock.lock_file).is_file():
            return False
        try:
            with lock.acquire(blocking=False):
                return False
        except Timeout:
            return True


def _logged_steps(run: Run) -> tuple[int, int | None]:
    """The last step in the log of a training, and how many are planned, if it says so."""
    step, planned = 0, None
    for event in run.events():
        step = max(step, event["step"])
        if event.get("event") == "start":
            planned = event.get("steps", planned)
    return step, planned


def read_experiment(path: Path) -> Experiment:
    """Read and check a grid with its training and search settings; raises ConfigError."""
    experiment = parse(Experiment, read_yaml(path), str(path))
    for system in experiment.systems:
        parse(TrainingConfig, experiment.settings(path.parent, system, experiment.seeds[0]), f"{path}: training")
    search = parse(SearchConfig, experiment.search, f"{path}: search")
    if experiment.inspect is not None and search.finished_hypotheses == "keep":
        raise RunError(
            f"{path}: inspect keeps beam trees, which a search with finished_hypotheses=keep does not record: leave one"
        )
    tests = experiment.data.test_names
    if experiment.inspect is not None and experiment.inspect not in tests:
        raise RunError(f"{path}: inspect: {experiment.inspect!r} is none of its tests: {', '.join(tests)}")
    for name in (experiment.name, *experiment.systems):
        if match := _NO_NAME.search(name):
            raise ConfigError(
                f"{path}: {name!r} names a folder, and not every file system takes {match[0]!r} there; choose another "
                "name"
            )
    if len(set(experiment.seeds)) < len(experiment.seeds):
        raise ConfigError(f"{path}: seeds: {list(experiment.seeds)} names a seed twice; each makes one run")
    return experiment


def cells(experiment: Experiment, root: Path, only: Sequence[str] = ()) -> list[Cell]:
    """The cells of the grid in order, or those named by their folders; raises RunError for an unknown name."""
    all_cells = list(_all_cells(experiment, root / experiment.name))
    known = [cell.name for cell in all_cells]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise RunError(f"{experiment.name} has no cell {unknown[0]!r}; {nearest(unknown[0], known)}")
    return [cell for cell in all_cells if not only or cell.name in only]


def training_key(experiment: Experiment, system: str, left_out: Collection[str] = ()) -> str:
    """What the trainings of a system are, but for the seed and the settings that are left out.

    As the grid writes it: a default that is written out makes another key.
    """
    training = {name: value for name, value in experiment.training.items() if name not in {*BOOKKEEPING, *left_out}}
    text = experiment.data.model_dump(exclude={"tests": True, "controlled": {"test", "long"}})
    begin = experiment.begin_from
    first = begin.get(system) if isinstance(begin, Mapping) else begin
    return json.dumps([text, experiment.systems[system], training, first], sort_keys=True)


def _all_cells(experiment: Experiment, folder: Path) -> Iterator[Cell]:
    for seed in experiment.seeds:
        for system in experiment.systems:
            plain = Cell(experiment, system, seed, folder / system)
            # A grid that began with one seed keeps that run when it gets more seeds.
            first = len(experiment.seeds) == 1 or _seed_of(plain.folder) == seed
            yield plain if first else Cell(experiment, system, seed, folder / f"{system}.seed-{seed}")


def _same_model(config: RunConfig, system: str) -> bool:
    """Return True if a run has the model of a system's description; names are compared first, without torch."""
    if config.system == system:
        return True
    from core_models.system_catalogue import MECHANISMS
    from core_models.system_spec import describe

    def with_defaults(model: ModelConfig) -> dict[str, Any]:  # with defaults of missing options
        items = [item for entry in model.mechanisms for item in entry.items()]
        return {
            **model.model_dump(),
            # A new run unties embeddings that separate vocabularies cannot share.
            "tie_embeddings": config.model.tie_embeddings,
            "mechanisms": [(kind, MECHANISMS[kind].Options(**options)) for kind, options in items],
        }

    return with_defaults(config.model) == with_defaults(describe(system))


def _seed_of(folder: Path) -> int | None:
    return read_config(folder).training.seed if (folder / "config.yaml").is_file() else None
