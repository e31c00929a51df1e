"""Translation and tracing of test sets by runs; results are written into the runs. Imports torch lazily."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import SearchConfig
from core_models.files.atomic_folders import atomic_replace_folder, others, refuse_foreign
from workbench.evaluation.distributed import over_ranks, own_device, wait
from workbench.evaluation.document_context import context_arguments
from workbench.store.runs import Run, RunError
from workbench.store.trace_index import write_token_digests
from workbench.store.translation_writer import foreign_to_translations, write_translations
from workbench.store.translations import TestSet, Translations

if TYPE_CHECKING:
    from core_models.decoding.inputs import Texts
    from core_models.traces import Trace
    from core_models.translator import Translation, Translator

Step = Callable[[int, int], None]  # (sentences done, sentences in all)


@dataclass(frozen=True)
class SearchEngine:
    """What searches: its name, and a function that is called and answers like `translate_lines`."""

    name: str
    translate: Callable[..., list[Translation] | None]


def prepared_of(run: Run) -> Any:
    """The prepared data that a run was trained on; raises RunError if the folder is missing."""
    from core_models.text.parallel import TextError
    from core_models.text.prepared import Prepared

    try:
        return Prepared.open(run.config.data_folder(run.folder))
    except TextError as error:
        raise RunError(f"{run.name}: its data is not at hand ({error}); give the test set as files instead") from None


def test_set(run: Run, name: str) -> tuple[TestSet, Path | None]:
    """A test set by name from the run's prepared data, and its file of truth records, if there is one."""
    prepared = prepared_of(run)
    text = prepared.test(name)
    return TestSet(name, text.sources, text.targets, text.documents), prepared.truth(name)


def translate_test(
    run: Run,
    test_set: TestSet,
    truth: Path | None = None,
    trees: bool = False,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
    engine: SearchEngine | None = None,
    **search: Any,
) -> Translations:
    """Translate a test set with a run and write the result into it. `search` changes the run's search settings.

    engine: what searches, if not the workbench; its name is stored, and so is the device that the model is on.
    Under `torchrun` the ranks share the batches; the files are the same as from one process with as many threads.
    """
    # Before the weights are read: training may go on meanwhile.
    made_by = {**run.made_by, **({"engine": engine.name} if engine else {})}
    if translator is None:
        translator = loaded(run, device)
    made_by["device"] = translator.device.type
    search = SearchConfig.by_current_names(search)
    check_translation(run, test_set.name, trees, search)
    began = time.perf_counter()
    translate = engine.translate if engine else translate_lines
    translations = translate(translator, test_set.sources, test_set.documents, step, record=trees, **search)
    if translations is not None:
        settings = stored_search(translator.search, search)
        write_translations(run, test_set, translations, settings, time.perf_counter() - began, truth, made_by)
    wait()
    return Translations(run.translations_folder(test_set.name), run.typed)  # also where training has gone on


def check_translation(run: Run, test: str, trees: bool, search: Mapping[str, Any]) -> None:
    """Raise RunError or FolderError, before any work is done, where a translation could not be written."""
    if trees and (search.get("finished_hypotheses") or run.config.search.finished_hypotheses) == "keep":
        raise RunError(
            f"{run.name}: a search with finished_hypotheses=keep records no trees; translate without --save-beams, or "
            "with --search finished_hypotheses=drop"
        )
    refuse_foreign(run.translations_folder(test), "translate", foreign_to_translations)


def stored_search(own: SearchConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a search as meta.json has them: a run's own, with changes by their current names."""
    return {**own.model_dump(), **{key: value for key, value in changes.items() if value is not None}}


def loaded(run: Run, device: str) -> Translator:
    """Load the model of a run; raises RunError for an outside run."""
    import core_models

    run.require_model()
    return core_models.load(run.reference, own_device(device))


def translate_lines(
    translator: Translator,
    sources: Sequence[str],
    documents: Sequence[str] | None = None,
    step: Step | None = None,
    record: bool = False,
    prefix: str | None = None,
    contexts: Texts | None = None,
    context_outputs: Texts | None = None,
    **search: Any,
) -> list[Translation] | None:
    """Translate sentences, shared over the ranks if there are several; returns None on all ranks but the first.

    step: called with this rank's progress. contexts, context_outputs: instead of documents, as in
    `Translator.translate`.
    """
    batches, translate = batchwise(
        translator, sources, documents, contexts, context_outputs, prefix=prefix, record=record, **search
    )
    translated = over_ranks(batches, translate, step)
    return None if translated is None else [translated[row] for row in range(len(sources))]


def batchwise(
    translator: Translator,
    sources: Sequence[str],
    documents: Sequence[str] | None = None,
    contexts: Texts | None = None,
    context_outputs: Texts | None = None,
    prefix: str | None = None,
    **settings: Any,
) -> tuple[list[list[int]], Callable[[list[int]], list[Translation]]]:
    """The batches of rows of sentences, and a function that translates one of them, wherever it is called."""
    if contexts is None:
        contexts, _ = translator.contexts(sources, documents)  # of all lines: those of a batch are not side by side

    def translate(rows: list[int]) -> list[Translation]:
        prefixes = None if prefix is None else [prefix] * len(rows)
        return translator.translate_rows(
            rows, sources, documents, contexts, context_outputs, prefix=prefixes, **settings
        )

    search = {key: value for key, value in settings.items() if key != "record"}
    return translator.batches(sources, documents, **search), translate


def trace_test(
    run: Run,
    translations: Translations,
    names: Sequence[str],
    sentences: Sequence[int] | None = None,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
) -> Path:
    """Force a run's own translations of a test set, piece by piece as the search found them, and write the traces.

    sentences: the rows to be traced (None: all). The folder is written atomically.
    """
    from core_models.traces import write_traces

    if translator is None:
        translator = loaded(run, device)
    rows = rows_to_trace(translations, sentences)
    check_traces(run, translations.test)
    batches, force = batchwise_traces(translator, translations, names, rows)
    traces = over_ranks(batches, force, step)
    if traces is not None:
        check_all_found(run, names, {name for trace in traces.values() for name in trace})
        with replaced_traces(run, translations, rows) as unfinished:
            write_traces(unfinished, traces)
    wait()
    return run.results / "traces" / translations.test


def rows_to_trace(translations: Translations, sentences: Sequence[int] | None) -> list[int]:
    """The rows of sentences, all of them by default; raises RunError for one that is not there."""
    rows = list(range(len(translations))) if sentences is None else list(sentences)
    outside = [row for row in rows if not 0 <= row < len(translations)]
    if outside:
        raise RunError(f"{translations.test} has sentences 0 to {len(translations) - 1}, not {outside[0]}")
    return rows


def check_traces(run: Run, test: str) -> None:
    """Raise FolderError, before any work is done, where traces could not be written."""
    refuse_foreign(run.results / "traces" / test, "trace", _foreign_to_traces)


def batchwise_traces(
    translator: Translator, translations: Translations, names: Sequence[str], rows: Sequence[int]
) -> tuple[list[list[int]], Callable[[list[int]], list[Trace]]]:
    """The batches of some rows of translations, and a function that forces one of them, wherever it is called."""
    test_set, written, details = translations.test_set, translations.hypotheses, translations.details

    def force(batch: list[int]) -> list[Trace]:
        return translator.trace(
            [test_set.sources[row] for row in batch],
            [details[row]["tokens"] for row in batch],
            names,
            **context_arguments(translator.context, test_set, batch, written),
        )

    batches = translator.batches([test_set.sources[row] for row in rows])
    return [[rows[index] for index in batch] for batch in batches], force


def check_all_found(run: Run, names: Sequence[str], found: Collection[str]) -> None:
    """Raise RunError for a name that no recorded array has, and where patterns such as "decoder.*" fit none at all."""
    missing = [name for name in names if not (found if set(name) & set("*?[") else name in found)]
    if missing:
        raise RunError(f"{run.name} has no trace of the name {', '.join(missing)}; '*' stands for all that it has")


@contextmanager
def replaced_traces(run: Run, translations: Translations, rows: Sequence[int]) -> Iterator[Path]:
    """Yield a folder for the traces of these rows, which then replaces the run's traces of this test set."""
    folder, details = run.results / "traces" / translations.test, translations.details
    with atomic_replace_folder(folder, "trace", _foreign_to_traces) as unfinished:
        yield unfinished
        write_token_digests(unfinished, {row: details[row]["tokens"] for row in rows})


def _foreign_to_traces(folder: Path) -> str | None:
    return others(folder, lambda name: re.fullmatch(r"(index|forced)\.json|[^/]+\.npy", name) is not None)
