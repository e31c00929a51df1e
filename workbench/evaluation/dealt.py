"""Translations, traces and statistics of test sets, dealt over the tasks of an array of jobs.

A task does its share of a run's batches; the one that finds all shares there writes what one process writes, byte for
byte. Tasks may be killed and called again at any time: what is there is not computed again. Imports torch lazily.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.files.atomic_folders import anything, atomic_replace_folder
from workbench.evaluation import translate
from workbench.evaluation.job_array import Again, ArraySettings, executor_of, submit_array
from workbench.evaluation.scoring import Counting, is_counted, statistics
from workbench.evaluation.shares import Shares, Unfinished, shares_of
from workbench.store.runs import Run, RunError, open_run
from workbench.store.translation_shares import read_shares, write_share
from workbench.store.translation_writer import write_translations

if TYPE_CHECKING:
    import submitit

    from core_models.translator import Translator

Say = Callable[[str], None]
DEFAULT = Counting()


@dataclass(frozen=True)
class Statistics:
    """Counting the statistics of translations that are there: a task a run."""

    test: str
    metrics: Sequence[str]
    counting: Counting = DEFAULT

    def calls(self, run: Run) -> list[tuple[str, int]]:
        """What its tasks are called with; nothing if all is counted."""
        translations = run.translations(self.test)
        done = all(is_counted(run, translations, metric, self.counting) for metric in self.metrics)
        return [] if done else [("", 0)]

    def do(self, run: Run, key: str, task: int) -> str:
        for metric in self.metrics:
            statistics(run, run.translations(self.test), metric, self.counting)
        return f"{run.statistics}: {', '.join(self.metrics)}"


@dataclass(frozen=True)
class _Dealt:
    """Work on a test set that is dealt: a subclass says what decides its results and how they are made.

    threads: of PyTorch in each task, and so of the one process that would give the same bits.
    """

    test: str
    device: str = "cpu"
    threads: int = 1
    tasks: int = 1

    def shares(self, run: Run) -> Shares:
        raise NotImplementedError

    def calls(self, run: Run) -> list[tuple[str, int]]:
        """What its tasks are called with; nothing if all is done."""
        shares = self.shares(run)
        return [(shares.key, task) for task in shares.tasks(self.tasks)]

    def do(self, run: Run, key: str, task: int) -> str:
        """Do a task's shares, and gather all if none is missing; returns what was done in words."""
        import torch

        shares = self.shares(run)
        if shares.key != key:
            raise _changed(run)
        torch.set_num_threads(self.threads)
        if not shares.gathered():
            try:
                self._do(run, shares, task)
            except Unfinished as error:
                return str(error)
        return f"{shares.result.parent}: done"

    def _do(self, run: Run, shares: Shares, task: int) -> None:
        raise NotImplementedError

    @property
    def _made_of(self) -> dict[str, Any]:
        kind = self.device.partition(":")[0]
        return {"device": kind, **({"threads": self.threads} if kind == "cpu" else {})}


@dataclass(frozen=True)
class Translating(_Dealt):
    """Translating a test set; with metrics, whoever gathers the translations also counts their statistics.

    trees: record the searches. search: changes to the run's search settings, by their current names.
    """

    trees: bool = False
    search: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[str] = ()
    counting: Counting = DEFAULT

    def shares(self, run: Run) -> Shares:
        test_set, _ = translate.test_set(run, self.test)
        texts = test_set.sources, test_set.documents, test_set.all_references
        own = run.config.search.changed(self.search).model_dump()
        made_of = {**self._made_of, "weights": run.digest, "search": own, "trees": self.trees, "texts": texts}
        result = run.translations_folder(self.test) / "meta.json"
        return shares_of(run.results, "translations", result, made_of, ".jsonl")

    def calls(self, run: Run) -> list[tuple[str, int]]:
        translate.check_translation(run, self.test, self.trees, self.search)
        return super().calls(run)

    def _do(self, run: Run, shares: Shares, task: int) -> None:
        made_by = run.made_by
        translator = _loaded(run, self.device)
        test_set, truth = translate.test_set(run, self.test)
        batches, translate_batch = translate.batchwise(
            translator, test_set.sources, test_set.documents, record=self.trees, **self.search
        )

        def write(path: Path, share: Sequence[list[int]]) -> None:
            began = time.perf_counter()
            found = {row: done for rows in share for row, done in zip(rows, translate_batch(rows), strict=True)}
            write_share(path, found, time.perf_counter() - began)

        paths = shares.do(batches, write, task, self.tasks)
        with shares.gathering() as mine:
            if not mine:
                return
            translations, seconds = read_shares(paths, len(test_set.sources))
            settings = translate.stored_search(translator.search, self.search)
            made_by = {**made_by, "device": translator.device.type}
            write_translations(run, test_set, translations, settings, seconds, truth, made_by)
        if self.metrics:
            Statistics(self.test, self.metrics, self.counting).do(run, "", 0)


@dataclass(frozen=True)
class Tracing(_Dealt):
    """Forcing a run's own translations and keeping traces: the arrays of `names`, of all sentences or of some."""

    names: Sequence[str] = ("*",)
    sentences: Sequence[int] | None = None

    def shares(self, run: Run) -> Shares:
        translations = run.translations(self.test)
        test_set, tokens = translations.test_set, [detail["tokens"] for detail in translations.details]
        made_of = {
            **self._made_of,
            "weights": run.digest,
            "search": run.config.search.model_dump(),  # its test_loss and the size of its batches
            "names": list(self.names),
            "rows": translate.rows_to_trace(translations, self.sentences),
            "texts": [test_set.sources, test_set.documents, translations.hypotheses, tokens],
        }
        return shares_of(run.results, "traces", run.results / "traces" / self.test / "index.json", made_of)

    def calls(self, run: Run) -> list[tuple[str, int]]:
        translate.check_traces(run, self.test)
        return super().calls(run)

    def _do(self, run: Run, shares: Shares, task: int) -> None:
        from core_models.traces import TraceError, TraceStore, join_traces, write_traces

        translator, translations = _loaded(run, self.device), run.translations(self.test)
        rows = translate.rows_to_trace(translations, self.sentences)
        batches, force = translate.batchwise_traces(translator, translations, self.names, rows)

        def write(path: Path, share: Sequence[list[int]]) -> None:
            traces = {row: trace for batch in share for row, trace in zip(batch, force(batch), strict=True)}
            with atomic_replace_folder(path, "trace", anything) as unfinished:
                write_traces(unfinished, traces)

        paths = shares.do(batches, write, task, self.tasks)
        with shares.gathering() as mine:
            if not mine:
                return
            try:
                stores = [TraceStore(path) for path in paths]
                translate.check_all_found(run, self.names, {name for store in stores for name in store.names})
                with translate.replaced_traces(run, translations, rows) as unfinished:
                    join_traces(unfinished, stores)
            except TraceError as error:
                raise RunError(f"a share of traces is damaged: {error}; remove its folder before") from None


def _loaded(run: Run, device: str) -> Translator:
    """Load the model of a run; raises RunError if training, say, replaces the weights meanwhile."""
    before = run.made_by
    translator = translate.loaded(run, device)
    if run.made_by != before:
        raise _changed(run)
    return translator


def _changed(run: Run) -> RunError:
    return RunError(
        f"{run.name}: its weights, texts or settings have changed since the array was submitted; give the same command "
        "again"
    )


Work = Translating | Tracing | Statistics


class Task(Again):
    """What a task of the array calls: a share of the work on one run. submitit pickles it."""

    def __call__(self, work: Work, reference: str, key: str, task: int) -> str:
        said = work.do(open_run(reference), key, task)
        print(said)
        return said


def submit(
    works: Mapping[str, Sequence[Work]], name: str, settings: ArraySettings, say: Say
) -> list[submitit.Job[str]]:
    """Submit one array with the tasks of all works that have something to do, by the reference of the run.

    Its logs are in `.jobs` beside the first run, hidden from patterns such as `runs/mine/*`. The nodes must see the
    runs under the same paths.
    """
    opened = {reference: open_run(reference) for reference in works}
    calls = [
        (work, str(Path(run.reference).absolute()), *call)
        for reference, run in opened.items()
        for work in works[reference]
        for call in work.calls(run)
    ]
    if not calls:
        return []
    first = next(iter(opened.values()))
    jobs = submit_array(executor_of(first.folder.absolute().parent / ".jobs", name, settings), Task(), calls)
    for (_, reference, _, task), job in zip(calls, jobs, strict=True):
        say(f"{reference}: task {task}, job {job.job_id}, log {job.paths.stdout}")
    return jobs
