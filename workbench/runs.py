"""Runs on disk: list them, open what they hold, write what is found out about them. Never imports torch.

    RUN/config.yaml  weights.safetensors  vocabulary/  training.jsonl  checkpoints/  state/
    RUN/translations/TEST/{meta.json, sources.txt, references.txt, documents.txt, hypotheses.txt, details.jsonl,
                           truth.jsonl, trees.jsonl, trees.npy}
    RUN/scores/  (statistics, cached by content)      RUN/traces/TEST/{index.json, NAME.npy}

Everything is read when it is asked for. A broken run is listed with its reason and stops nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core_models.config import CONFIG, ConfigError, RunConfig, read_config, split_reference, weights_path
from core_models.text.parallel import read_lines, write_lines
from core_models.traces import TraceStore

if TYPE_CHECKING:
    import pandas as pd

    from core_models.translator import Translation

DEPTH = 2  # folders below the root in which runs are looked for: ROOT/RUN and ROOT/EXPERIMENT/RUN


class RunError(ValueError):
    """A run, or something it should hold, that cannot be used; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class TestSet:
    """A test set as a run translated it: sentences are lines, `truth` is there for the controlled corpus."""

    __test__ = False  # pytest would take it for a class of tests, by its name

    name: str
    sources: list[str]
    references: list[str] | None
    documents: list[str] | None


class Translations:
    """What one run made of one test set, read lazily from RUN/translations/TEST."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.test = folder, folder.name
        try:
            self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise RunError(f"{folder}: no finished translation here ({error}); translate the test set again") from None

    def __len__(self) -> int:
        return int(self.meta["sentences"])

    @cached_property
    def test_set(self) -> TestSet:
        return TestSet(
            self.test, self._lines("sources.txt") or [], self._lines("references.txt"), self._lines("documents.txt")
        )

    @cached_property
    def hypotheses(self) -> list[str]:
        return self._lines("hypotheses.txt") or []

    @cached_property
    def details(self) -> list[dict[str, Any]]:
        """A record a sentence: tokens, source_tokens, score, log_prob, token_log_probs, finished, n_best."""
        return _read_jsonl(self.folder / "details.jsonl")

    @cached_property
    def truth(self) -> list[dict[str, Any]] | None:
        path = self.folder / "truth.jsonl"
        return _read_jsonl(path) if path.is_file() else None

    @property
    def has_trees(self) -> bool:
        return (self.folder / "trees.npy").is_file()

    def tree(self, sentence: int) -> dict[str, Any]:
        """The recorded search of a sentence; raises RunError with the command that records it."""
        if not self.has_trees:
            raise RunError(
                f"{self.folder.parent.parent} has no beam trees for {self.test}; record them: "
                f"workbench translate {self.folder.parent.parent} --test {self.test} --trees"
            )
        starts = np.load(self.folder / "trees.npy", allow_pickle=False)
        if not 0 <= sentence < len(starts) - 1:
            raise RunError(f"{self.test} has sentences 0 to {len(starts) - 2}, not {sentence}")
        with (self.folder / "trees.jsonl").open("rb") as file:
            file.seek(int(starts[sentence]))
            return json.loads(file.read(int(starts[sentence + 1] - starts[sentence])))

    def _lines(self, name: str) -> list[str] | None:
        path = self.folder / name
        return read_lines(path) if path.is_file() else None


@dataclass(frozen=True)
class Run:
    """A run folder, or with a `step` one of its checkpoints as a system of its own (RUN@step).

    `name` is its path below the runs folder, `problem` says why it cannot be used, if it cannot.
    """

    folder: Path
    name: str
    problem: str | None = None
    step: str = ""

    @property
    def reference(self) -> str:
        """What `core_models.load` and the command line take: RUN or RUN@step."""
        return f"{self.folder}@{self.step}" if self.step else str(self.folder)

    @property
    def weights(self) -> Path:
        return weights_path(self.folder, self.step)

    @property
    def results(self) -> Path:
        """Where translations, traces and scores lie: in the run, or in a folder beside the checkpoint."""
        return self.weights.with_suffix("") if self.step else self.folder

    @cached_property
    def config(self) -> RunConfig:
        return read_config(self.folder)

    @property
    def system(self) -> str:
        return self.config.system or self.config.name

    @property
    def trained(self) -> bool:
        """Are there weights to translate with? A run that is being trained has them after its first validation."""
        return self.weights.is_file()

    def events(self) -> list[dict[str, Any]]:
        """What training logged; a last line that was cut short is left out."""
        path = self.folder / "training.jsonl"
        return _read_jsonl(path, tolerant=True) if path.is_file() else []

    def tests(self) -> list[str]:
        """Names of the test sets that this run has translated."""
        found = (path.parent.name for path in (self.results / "translations").glob("*/meta.json"))
        return sorted(name for name in found if not name.startswith("."))  # a leading dot: not finished

    def translations(self, test: str) -> Translations:
        if test not in self.tests():
            raise RunError(
                f"{self.name} has not translated {test!r}; do it: workbench translate {self.reference} --test {test}"
            )
        return Translations(self.results / "translations" / test)

    def traces(self, test: str) -> TraceStore:
        folder = self.results / "traces" / test
        if not (folder / "index.json").is_file():
            raise RunError(
                f"{self.name} has no traces of {test!r} yet; make them: workbench trace {self.reference} --test {test}"
            )
        return TraceStore(folder)

    @property
    def statistics(self) -> Path:
        """Where the statistics of metrics are cached, by content."""
        return self.results / "scores"


def runs_folder() -> Path:
    """The folder that holds the runs: WORKBENCH_RUNS from the environment, else ./runs."""
    return Path(os.environ.get("WORKBENCH_RUNS") or "runs").resolve()


def list_runs(root: str | Path) -> list[Run]:
    """All runs below a folder, by name; broken ones carry their problem."""
    root = Path(root)
    found = {path.parent for depth in range(1, DEPTH + 1) for path in root.glob("/".join(["*"] * depth) + f"/{CONFIG}")}
    return [_examine(folder, folder.relative_to(root).as_posix()) for folder in sorted(found)]


def open_run(path: str | Path, root: str | Path | None = None) -> Run:
    """Open a run or RUN@step; with a root, `path` is a name below it and may not lead out of it. Raises RunError."""
    folder, step = split_reference(path)
    if root is not None:
        folder = (Path(root) / folder).resolve()
        if not folder.is_relative_to(Path(root).resolve()):
            raise RunError(f"{path}: outside of the runs folder; only runs below it can be opened")
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder}: no run here: {CONFIG} is missing")
    run = _examine(folder, str(path) if root is not None else Path(os.path.abspath(folder)).name)
    if run.problem:
        raise RunError(run.problem)
    if step and not weights_path(folder, step).is_file():
        known = ", ".join(sorted(found.stem for found in (folder / "checkpoints").glob("*.safetensors"))) or "none"
        raise RunError(f"{folder} has no checkpoint {step!r}; it has: {known}")
    return replace(run, name=f"{run.name.removesuffix('@' + step)}@{step}", step=step) if step else run


def open_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Open runs to be compared; those that share a name are told apart by the folder above. Raises RunError."""
    opened = [open_run(path) for path in paths]
    names = [run.name for run in opened]
    if len(set(names)) < len(names):
        opened = [replace(run, name=f"{Path(os.path.abspath(run.folder)).parent.name}/{run.name}") for run in opened]
        names = [run.name for run in opened]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RunError(f"{twice[0]} is named twice; name each run once")
    return opened


def _examine(folder: Path, name: str) -> Run:
    try:
        read_config(folder)
    except ConfigError as error:
        return Run(folder, name, str(error))
    except OSError as error:
        return Run(folder, name, f"{folder / CONFIG}: {error.strerror}")
    missing = [side for side in ("source", "target") if not (folder / "vocabulary" / f"{side}.model").is_file()]
    if missing:
        return Run(folder, name, f"{folder / 'vocabulary'}: {missing[0]}.model is missing; the run is not whole")
    return Run(folder, name)


def write_translations(
    run: Run,
    test: TestSet,
    found: Sequence[Translation],
    search: Mapping[str, Any],
    seconds: float,
    truth: Path | None = None,
) -> Translations:
    """Put translations of a test set beside the run, whole or not at all; traces of other translations go."""
    final = run.results / "translations" / test.name
    part = final.with_name(f".{test.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_lines(part / "sources.txt", test.sources)
    write_lines(part / "hypotheses.txt", [one_line(translation.text) for translation in found])
    for name, lines in (("references.txt", test.references), ("documents.txt", test.documents)):
        if lines is not None:
            write_lines(part / name, lines)
    _write_jsonl(part / "details.jsonl", (_detail(translation) for translation in found))
    if truth is not None:
        shutil.copyfile(truth, part / "truth.jsonl")
    if found and all(translation.tree is not None for translation in found):
        starts = _write_jsonl(part / "trees.jsonl", (translation.tree for translation in found))
        np.save(part / "trees.npy", np.array(starts, dtype=np.int64), allow_pickle=False)
    meta = {
        "test": test.name,
        "sentences": len(found),
        "search": dict(search),
        "seconds": round(seconds, 3),
        "output_tokens": sum(len(translation.tokens) for translation in found),
    }
    (part / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    if _hypotheses(final) != _hypotheses(part):
        shutil.rmtree(run.results / "traces" / test.name, ignore_errors=True)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(part, final)
    return Translations(final)


def _hypotheses(folder: Path) -> bytes | None:
    path = folder / "hypotheses.txt"
    return path.read_bytes() if path.is_file() else None


def one_line(text: str) -> str:
    """A translation as one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def _detail(translation: Translation) -> dict[str, Any]:
    return {
        "tokens": translation.tokens,
        "source_tokens": translation.source_tokens,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "token_log_probs": translation.token_log_probs,
        "finished": translation.finished,
        "n_best": [
            {"text": other.text, "score": other.score, "log_prob": other.log_prob} for other in translation.n_best
        ],
    }


def _write_jsonl(path: Path, records: Iterable[Any]) -> list[int]:
    """Write a record a line; returns where each begins, and the end."""
    starts = [0]
    with path.open("wb") as file:
        for record in records:
            starts.append(starts[-1] + file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n"))
    return starts


def _read_jsonl(path: Path, tolerant: bool = False) -> list[dict[str, Any]]:
    return list(_records(path, tolerant))


def _records(path: Path, tolerant: bool) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line:
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            if not tolerant:
                raise RunError(f"{path}:{number}: not a JSON record ({error.msg}); write the file again") from None


def training_table(runs: Iterable[Run]) -> pd.DataFrame:
    """What runs logged, a row a value: run, step, epoch, tokens, seconds, name, value."""
    import pandas as pd

    rows = []
    for run in runs:
        for event in run.events():
            if event.get("event") not in ("train", "valid"):
                continue
            place = {key: event.get(key) for key in ("step", "epoch", "tokens", "seconds")}
            prefix = "dev_" if event["event"] == "valid" else "train_"
            for name, value in event.items():
                if isinstance(value, int | float) and name not in ("step", "epoch", "tokens", "seconds", "time"):
                    shared = name in ("learning_rate", "gradient_norm", "tokens_per_second")
                    rows.append(
                        {"run": run.name, **place, "name": name if shared else prefix + name, "value": float(value)}
                    )
    return pd.DataFrame(rows, columns=["run", "step", "epoch", "tokens", "seconds", "name", "value"])
