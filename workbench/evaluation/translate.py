"""Translation and tracing of test sets by runs; results are written into the runs. Imports torch lazily."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
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

    engine: what searches, if not the workbench; its name is stored.
    Under `torchrun` the ranks share the batches; the files are the same as from one process with as many threads.
    """
    # Before the weights are read: training may go on meanwhile.
    made_by = {**run.made_by, **({"engine": engine.name} if engine else {})}
    if translator is None:
        translator = _loaded(run, device)
    search = SearchConfig.by_current_names(search)
    if trees and (search.get("finished_hypotheses") or translator.search.finished_hypotheses) == "keep":
        raise RunError(
            f"{run.name}: a search with finished_hypotheses=keep records no trees; translate without --save-beams, or "
            "with --search finished_hypotheses=drop"
        )
    refuse_foreign(
        run.translations_folder(test_set.name), "translate", foreign_to_translations
    )  # before any work is done
    began = time.perf_counter()
    translate = engine.translate if engine else translate_lines
    translations = translate(translator, test_set.sources, test_set.documents, step, record=trees, **search)
    if translations is not None:
        changes = {key: value for key, value in search.items() if value is not None}
        settings = {**translator.search.model_dump(), **changes}
        write_translations(run, test_set, translations, settings, time.perf_counter() - began, truth, made_by)
    wait()
    return Translations(run.translations_folder(test_set.name), run.typed)  # also where training has gone on


def _loaded(run: Run, device: str) -> Translator:
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
    if contexts is None:
        contexts, _ = translator.contexts(sources, documents)  # of all lines: those of a batch are not side by side

    def translate(rows: list[int]) -> list[Translation]:
        prefixes = None if prefix is None else [prefix] * len(rows)
        return translator.translate_rows(
            rows, sources, documents, contexts, context_outputs, prefix=prefixes, record=record, **search
        )

    translated = over_ranks(translator.batches(sources, documents, **search), translate, step)
    return None if translated is None else [translated[row] for row in range(len(sources))]


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
        translator = _loaded(run, device)
    rows = list(range(len(translations))) if sentences is None else list(sentences)
    outside = [row for row in rows if not 0 <= row < len(translations)]
    if outside:
        raise RunError(f"{translations.test} has sentences 0 to {len(translations) - 1}, not {outside[0]}")
    folder = run.results / "traces" / translations.test
    refuse_foreign(folder, "trace", _foreign_to_traces)  # before any work is done
    test_set, written = translations.test_set, translations.hypotheses
    sources = [test_set.sources[row] for row in rows]
    tokens = [translations.details[row]["tokens"] for row in rows]

    def force(indices: list[int]) -> list[Trace]:
        return translator.trace(
            [sources[index] for index in indices],
            [tokens[index] for index in indices],
            names,
            **context_arguments(translator.context, test_set, [rows[index] for index in indices], written),
        )

    traces = over_ranks(translator.batches(sources), force, step)
    if traces is not None:
        if not any(traces.values()):
            raise RunError(f"{run.name} has no trace of the name {', '.join(names)}; '*' stands for all that it has")
        with atomic_replace_folder(folder, "trace", _foreign_to_traces) as unfinished:
            write_traces(unfinished, {rows[index]: trace for index, trace in traces.items()})
            write_token_digests(unfinished, dict(zip(rows, tokens, strict=True)))
    wait()
    return folder


def _foreign_to_traces(folder: Path) -> str | None:
    return others(folder, lambda name: re.fullmatch(r"(index|forced)\.json|[^/]+\.npy", name) is not None)
