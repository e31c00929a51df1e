"""Runs on disk: list them and open what they hold. Never imports torch.

    RUN/config.yaml  weights.safetensors  vocabulary/  training.jsonl  checkpoints/  state/
    RUN/translations/TEST/  (see translations.py)
    RUN/scores/  (statistics, cached by content)      RUN/traces/TEST/{index,forced}.json, NAME.npy
    RUN/shares/  (what tasks of an array have done, evaluation/shares.py)

A run of the kind "outside" holds translations that were made elsewhere, and a config.yaml that says so.
Everything is read lazily. A broken run is listed with the reason and does not stop anything else.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from core_models.config import CONFIG, TRAINING_LOG, RunConfig, TrainingConfig, split_reference, weights_path
from core_models.files.atomic_folders import folders_in, is_left_over, mend
from core_models.files.run_files import LOG, open_file, parse_json
from core_models.settings import ConfigError
from core_models.traces import TraceStore
from core_models.training.events import read_events
from workbench.store import exhibits
from workbench.store.errors import RunError
from workbench.store.file_digests import digest_of, stamp_of
from workbench.store.run_configs import OUTSIDE, OutsideConfig, config_of
from workbench.store.translations import Translations

__all__ = [
    "ALIGNERS",
    "OUTSIDE",
    "PRECISION",
    "WORKER_LOG",
    "OutsideConfig",
    "Run",
    "RunError",
    "examine",
    "folders_beside",
    "lies_beside_runs",
    "list_runs",
    "open_run",
    "open_runs",
    "run_folders",
    "runs_folder",
    "trained_as",
]

_DECISIVE = (CONFIG, *(f"vocabulary/{side}.model" for side in ("source", "target")))
ALIGNERS, PRECISION = "aligners", "precision.json"
WORKER_LOG = "worker-{}.log"
# What a folder of runs holds beside them.
BESIDE_RUNS = (
    "data",
    "data.json",
    "corpus",
    "jobs",
    "annotations",
    ALIGNERS,
    PRECISION,
    "*.yaml",
    WORKER_LOG.format("*"),
)
DEPTH = 2  # folders below the root in which runs are looked for: ROOT/RUN and ROOT/EXPERIMENT/RUN
_LOG_END_BYTES = 16_384  # of a training log, in which its last event stands


def trained_as(system: str, training: TrainingConfig) -> str:
    """NAME:key=value,... of the catalogue, or NAME+aol:key=value,... if trained towards adequacy (Kong 2019)."""
    name, sign, settings = system.partition(":")
    return f"{name}+aol{sign}{settings}" if training.adequacy.weight else system


@dataclass(frozen=True)
class Run:
    """A run folder, or with a `step` one of its checkpoints as a system of its own (RUN@step).

    `name` is its path below the runs folder; `problem` says why it cannot be used, None if it can.
    """

    folder: Path
    name: str
    problem: str | None = None
    step: str = ""

    @property
    def reference(self) -> str:
        """RUN or RUN@step, as `core_models.load` takes it."""
        return f"{self.folder}@{self.step}" if self.step else str(self.folder)

    @property
    def argument(self) -> str:
        """RUN or RUN@step for a command line: `reference`, but an exhibit by its name."""
        shown = exhibits.root() if exhibits.is_exhibit(self.name) else None
        path = self.folder.relative_to(shown) if shown and self.folder.is_relative_to(shown) else self.folder
        return f"{path}@{self.step}" if self.step else str(path)

    @property
    def typed(self) -> str:
        """`argument` quoted for a shell, for commands to be copied."""
        return shlex.quote(self.argument)

    @property
    def weights(self) -> Path:
        """The file of its weights; of a foreign model the configuration, which holds the digest of its weights."""
        return self.folder / CONFIG if self.foreign else weights_path(self.folder, self.step)

    @cached_property
    def foreign(self) -> bool:
        """Return True if its model is one of Hugging Face, which lies elsewhere."""
        try:
            config = config_of(self.folder)
        except (ConfigError, OSError):  # reported where the configuration is needed
            return False
        return isinstance(config, RunConfig) and config.foreign is not None

    @property
    def digest(self) -> str:
        """The digest of its weights; "" without weights."""
        if self.foreign and self.config.foreign is not None:
            return self.config.foreign.digest
        return digest_of(self.weights) if self.trained else ""

    @property
    def made_by(self) -> dict[str, Any]:
        """Digest and stamp of the weights, stored with translations made by them; empty without weights."""
        return {"weights_file": stamp_of(self.weights), "weights": self.digest} if self.trained else {}

    def is_of(self, digest: object) -> bool:
        """Return True if a stored result was made with the present weights; a result without a digest (None) counts."""
        if digest is None or digest == self.digest:
            return True
        return self.foreign and digest == digest_of(self.weights)  # as it was stored before 2026-11-30

    def outdated(self, test: str) -> bool:
        """Return True if translations of a test set were made by other weights, say before training went on.

        The weights are read only if their file has changed.
        """
        if not self.trained:  # the translations could not be made again
            return False
        try:
            meta = Translations(self.translations_folder(test)).meta
        except RunError:  # missing or damaged: reported where they are opened
            return False
        return meta.get("weights_file") != stamp_of(self.weights) and not self.is_of(meta.get("weights"))

    @property
    def results(self) -> Path:
        """The folder of translations, traces and scores: the run's, or one beside the checkpoint."""
        return self.weights.with_suffix("") if self.step else self.folder

    @cached_property
    def outside(self) -> bool:
        """Return True if its translations were made elsewhere; it then has no weights, beam trees or traces."""
        try:
            return isinstance(config_of(self.folder), OutsideConfig)
        except ConfigError:  # reported where the configuration is needed
            return False

    @cached_property
    def config(self) -> RunConfig:
        """Its training configuration; RunError for an outside run."""
        self.require_model()
        config = config_of(self.folder)
        assert isinstance(config, RunConfig)
        return config

    def require_model(self) -> None:
        """Raise RunError for an outside run, which has no model."""
        if self.outside:
            raise RunError(f"{self.name} was translated elsewhere: it has its translations, no model to work with")

    @property
    def system(self) -> str:
        """Its name in the catalogue with its settings, and its way of training if that has a name."""
        if self.outside:
            return "translated elsewhere"
        return trained_as(self.config.system or self.config.name, self.config.training)

    @property
    def mechanisms(self) -> frozenset[str]:
        """The names of its model's mechanisms."""
        return frozenset(self.mechanism_options)

    @property
    def mechanism_options(self) -> dict[str, dict[str, Any]]:
        """The options of each mechanism of its model, in the order of its configuration."""
        named = () if self.outside else self.config.model.mechanisms
        return {kind: options or {} for mechanism in named for kind, options in mechanism.items()}

    @property
    def trained(self) -> bool:
        """Return True if it has weights; a run in training has them after its first validation."""
        return self.weights.is_file()

    @property
    def finished(self) -> bool:
        """Return True if its training has ended, or it was not trained here (an outside run, weights without a log)."""
        if self.outside or not self.log.is_file():
            return self.outside or self.trained
        return self.trained and _last_event(self.log).get("event") == "end"

    def events(self) -> list[dict[str, Any]]:
        """The events of the training log, without damaged lines. Raises OSError."""
        return list(read_events(self.log))

    @property
    def log(self) -> Path:
        """The training log, one event per line."""
        return self.folder / TRAINING_LOG

    @cached_property
    def precision(self) -> str:
        """float32, bfloat16 or float64, in which it was trained; "" if it was not trained here or not yet."""
        if self.outside or self.foreign:
            return ""
        if self.config.training.precision != "auto":
            return self.config.training.precision
        starts = [event for event in self.events() if event.get("event") == "start"]
        return str(starts[-1].get("precision") or "") if starts else ""

    def commits(self) -> list[str]:
        """The commits of this code that its training ran at, in order: several if it was resumed at another one.

        Empty if its log, of an earlier version, knows none. "-dirty" follows one whose files had changed.
        """
        starts = [event for event in self.events() if event.get("event") == "start"]
        return list(dict.fromkeys(str(event["commit"]) for event in starts if event.get("commit")))

    def decisive_files(self) -> list[str]:
        """The files that determine the run and the list of its translations, for caches."""
        files = [*(f"{self.folder}/{name}" for name in _DECISIVE), str(self.weights)]
        with suppress(OSError):  # nothing was translated
            files += sorted(f"{entry.path}/meta.json" for entry in os.scandir(self.results / "translations"))
        return files

    def tests(self) -> list[str]:
        """Names of the test sets that this run has translated with its present weights."""
        return [name for name in self.translated() if not self.outdated(name)]

    def translated(self) -> list[str]:
        """Names of the test sets that this run has translated, with present or earlier weights."""
        folders = folders_in(self.results / "translations")
        return [name for name, folder in folders.items() if os.path.lexists(folder / "meta.json")]

    def translations_folder(self, test: str) -> Path:
        """The folder of the translations of a test set, which need not exist."""
        return self.results / "translations" / test

    def traces_folder(self, test: str) -> Path:
        """The folder of the traces of a test set, which need not exist."""
        return mend(self.results / "traces" / test)

    def traced(self, test: str) -> bool:
        """Return True if there are traces of the present translations of a test set."""
        folder = self.traces_folder(test)
        if not os.path.lexists(folder / "index.json"):
            return False
        try:
            return not Translations(self.translations_folder(test)).outdates(folder)
        except RunError:  # translations are missing or damaged: reported where they are opened
            return True

    def translations(self, test: str) -> Translations:
        if test in self.translated():
            self._refuse_outdated(test)
            return Translations(self.translations_folder(test), self.typed)
        if self.outside:
            known = ", ".join(self.tests()) or "none"
            target_arguments = ["--out", str(self.folder.parent), f"{self.folder.name}=FILE"]
            raise RunError(
                f"{self.name} was translated elsewhere and has no {test!r}, only: {known}; bring it in: "
                + shlex.join(
                    ["workbench", "runs", "import-translations", "--test", test, "--source", "FILE", *target_arguments]
                )
            )
        raise RunError(f"{self.name} has not translated {test!r}; do it: {self._translating(test)}")

    def traces(self, test: str) -> TraceStore:
        if self.outside:
            raise RunError(f"{self.name} was translated elsewhere: without its model there is nothing to trace")
        if not self.traced(test):
            raise RunError(
                f"{self.name} has no traces of {test!r} yet; make them: "
                f"workbench trace {self.typed} --test {shlex.quote(test)}"
            )
        self._refuse_outdated(test)
        return TraceStore(self.traces_folder(test))

    def _refuse_outdated(self, test: str) -> None:
        if self.outdated(test):
            raise RunError(
                f"{self.name} translated {test!r} with other weights than it has now; do it again: "
                + self._translating(test)
            )

    def _translating(self, test: str) -> str:
        return f"workbench translate {self.typed} --test {shlex.quote(test)}"

    @property
    def statistics(self) -> Path:
        """The folder in which statistics of metrics are cached by content."""
        return self.results / "scores"


def _last_event(log: Path) -> dict[str, Any]:
    """The last whole event of a training log, read from the end of the file; empty if there is none."""
    with suppress(OSError), open_file(log, LOG) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_END_BYTES))
        for line in reversed(file.read(_LOG_END_BYTES).splitlines()):
            with suppress(ValueError):
                event = parse_json(line)
                if isinstance(event, dict):
                    return event
    return {}


def runs_folder() -> Path:
    """The folder that holds the runs: WORKBENCH_RUNS from the environment, else ./runs."""
    return Path(os.environ.get("WORKBENCH_RUNS") or "runs").resolve()


def list_runs(root: str | Path) -> list[Run]:
    """All runs below a folder, by name; broken runs carry their problem."""
    root = Path(root)
    return [examine(folder, folder.relative_to(root).as_posix()) for folder in run_folders(root)]


def run_folders(root: Path) -> list[Path]:
    """The run folders below a folder, sorted; folders that cannot be listed are skipped."""
    return sorted(map(Path, _run_folders(root, DEPTH)))


def _run_folders(folder: str | Path, depth: int) -> Iterator[str]:
    try:
        entries = [entry.path for entry in os.scandir(folder) if entry.is_dir() and not is_left_over(entry.name)]
    except OSError:
        return
    for path in entries:
        if os.path.exists(os.path.join(path, CONFIG)):
            yield path
        if depth > 1:
            yield from _run_folders(path, depth - 1)


def open_run(path: str | Path, root: str | Path | None = None) -> Run:
    """Open a run or RUN@step; with a root, `path` is a name below it and may not lead out of it. Raises RunError.

    exhibits/NAME is the exhibit of this name, unless there is such a folder.
    """
    folder, step = split_reference(path)
    if root is not None and (folder.is_absolute() or ".." in folder.parts):
        raise RunError(f"{path}: outside of the runs folder; only runs below it can be opened")
    asked, folder = folder, exhibits.run_folder(folder, None if root is None else Path(root))
    if not os.path.lexists(folder / CONFIG):
        below = run_folders(folder)
        known = f"; there are runs below it, such as {below[0]}" if below else ""
        raise RunError(f"{folder}: no run here: {CONFIG} is missing{known}")
    name = Path(os.path.abspath(folder)).name
    if root is not None:
        name = str(path)
    elif folder != asked:  # an exhibit, by the name under which it is found again
        name = asked.as_posix()
    run = examine(folder, name)
    if run.problem:
        raise RunError(run.problem)
    if step and not os.path.isfile(weights_path(folder, step)):
        known = (
            ", ".join(sorted(checkpoint.stem for checkpoint in (folder / "checkpoints").glob("*.safetensors")))
            or "none"
        )
        raise RunError(f"{folder} has no checkpoint {step!r}; it has: {known}")
    return replace(run, name=f"{run.name.removesuffix('@' + step)}@{step}", step=step) if step else run


def lies_beside_runs(path: Path) -> bool:
    """Return True for what a folder of runs holds beside them: text, labels, word aligners, and files of a grid."""
    return any(fnmatchcase(path.name, name) for name in BESIDE_RUNS) and not os.path.lexists(path / CONFIG)


def folders_beside(run: Path) -> tuple[Path, ...]:
    """The folders that may hold what lies beside a run: the one above it and the next; of an exhibit the user's."""
    folder = Path(os.path.abspath(run))
    if exhibits.is_exhibit(folder.parent.name) and (shown := exhibits.root()) and folder.is_relative_to(shown):
        return (runs_folder(),)
    return folder.parent, folder.parent.parent


def open_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Open runs to be compared; runs of the same name get the name of the folder above too. Raises RunError."""
    opened = [open_run(path) for path in paths]
    names = [run.name for run in opened]
    if len(set(names)) < len(names):
        opened = [
            replace(run, name=f"{Path(os.path.abspath(run.folder)).parent.name}/{run.name}")
            if names.count(run.name) > 1
            else run
            for run in opened
        ]
        names = [run.name for run in opened]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RunError(f"{twice[0]} is named twice; name each run once")
    return opened


def examine(folder: Path, name: str) -> Run:
    """The run in a folder, with `problem` set if it cannot be used."""
    if (shown := name.encode(errors="backslashreplace").decode()) != name:
        return Run(folder, shown, f"{shown}: the folder's name is no UTF-8, so it cannot be written down; rename it")
    try:
        config = config_of(folder)
        if isinstance(config, OutsideConfig) or config.foreign is not None:
            return Run(folder, name)
    except ConfigError as error:
        return Run(folder, name, str(error))
    except OSError as error:
        return Run(folder, name, f"{folder / CONFIG}: {error.strerror}")
    missing = [side for side in ("source", "target") if not (folder / "vocabulary" / f"{side}.model").is_file()]
    if missing:
        return Run(folder, name, f"{folder / 'vocabulary'}: {missing[0]}.model is missing; the run is not whole")
    return Run(folder, name)


def short_names(runs: Sequence[Run]) -> dict[str, str]:
    """Run names for legends: the last part of the path if that is unique."""
    last = [run.name.rsplit("/", 1)[-1] for run in runs]
    return {run.name: short if last.count(short) == 1 else run.name for run, short in zip(runs, last, strict=True)}
