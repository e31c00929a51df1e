"""What a run is forced through, its own translations or the references, each sentence in its document, with traces.

Knows test sets and runs; torch comes with the first forced sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses.attention import END
from workbench.evaluation.document_context import beside, own_source, texts_before
from workbench.evaluation.result_cache import digest
from workbench.store import provenance
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.traces import Trace
    from core_models.translator import Translator

TARGETS = {"own": "the runs' own translations", "reference": "the references"}
AT_ONCE = 16  # sentences whose arrays are held


def references_of(run: Run, test: str) -> list[str]:
    """The references of a test set; raises RunError where it has none."""
    found = run.translations(test).test_set.references
    if found is None:
        raise RunError(f"the test set {test!r} has no references that could be forced; take the runs' own translations")
    return found


@dataclass(frozen=True)
class Given:
    """What is forced: pieces of an own translation, or the text of a reference."""

    row: int
    source: str
    text: str
    pieces: tuple[str, ...] = ()


def given(run: Run, test: str, target: str, sentences: int | None) -> list[Given]:
    """What is forced of the first so many sentences (None: all); those that are empty are left out. Raises RunError,
    also where none is left."""
    found = _texts(run, test, target, sentences)
    if not found:
        raise RunError(f"{run.name}: there is nothing of {test!r} that could be forced; translate it again")
    return found


def _texts(run: Run, test: str, target: str, sentences: int | None) -> list[Given]:
    if target not in TARGETS:
        raise RunError(f"target {target!r}: choose {' or '.join(TARGETS)}")
    run.require_model()
    translations = run.translations(test)
    sources = translations.test_set.sources[:sentences]
    if target == "reference":
        wanted = zip(sources, references_of(run, test)[:sentences], strict=True)
        return [Given(row, source, text) for row, (source, text) in enumerate(wanted) if text.strip()]
    pieces = [tuple(detail["tokens"]) for detail in translations.details[:sentences]]
    whole = enumerate(zip(sources, pieces, strict=True))
    return [Given(row, source, "", own) for row, (source, own) in whole if own]


@dataclass(frozen=True)
class Forced:
    """One of what was given, forced in its document: pieces of both sides, </s> among them, and the trace. Where the
    sentences before are joined to the source, both are of the sentence's own."""

    given: Given
    sources: list[str]
    targets: list[str]
    trace: Trace


def forced(
    run: Run, test: str, target: str, given: Sequence[Given], names: Sequence[str], at_once: int = AT_ONCE
) -> Iterator[Forced]:
    """Force what is given, so many sentences at once, and record arrays by name. Raises what loading does."""
    import core_models

    translator = core_models.load(run.reference)
    found, outputs = run.translations(test).test_set, _outputs(run, test, target)
    for begin in range(0, len(given), at_once):
        chunk = given[begin : begin + at_once]
        sources = [one.source for one in chunk]
        before = beside(translator.context, found, [one.row for one in chunk], outputs)
        if target == "reference":
            scored = translator.score(sources, [one.text for one in chunk], trace=names, **before)
            passed = [(one.tokens, one.trace or {}) for one in scored]
        else:
            pieces = [list(one.pieces) for one in chunk]
            passed = list(zip(pieces, translator.trace(sources, pieces, names, **before), strict=True))
        for one, (tokens, trace) in zip(chunk, passed, strict=True):
            own = _source_pieces(translator, one.source)
            yield Forced(one, own, tokens, own_source(trace, len(own)))


def _outputs(run: Run, test: str, target: str) -> list[str]:
    """The translations of all lines, where a run reads those before a sentence: of the kind that is forced."""
    return references_of(run, test) if target == "reference" else run.translations(test).hypotheses


def _source_pieces(translator: Translator, source: str) -> list[str]:
    vocabulary = translator.source_vocabulary
    return [*vocabulary.pieces(vocabulary.encode([source])[0]), END]


def forced_inputs(run: Run, test: str, target: str, given: Sequence[Given]) -> dict[str, str]:
    """What a measurement of forced sentences is computed from, for the `ResultCache`."""
    texts = [[one.row, one.source, one.text, one.pieces] for one in given]
    before = texts_before(run, run.translations(test).test_set, _outputs(run, test, target))
    return {"model": provenance.digests(run, "")["model"], "target": target, "texts": digest([texts, *before])}
