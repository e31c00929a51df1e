"""Translations forced through a run, each sentence in its document, with traces; every measure of them goes this way.

A run is opened once and stays open a while, two at most; one that was trained further is opened anew. Knows test sets
and runs; torch comes with the first forced sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from analyses.attention import END
from workbench.evaluation.document_context import (
    ContextSentences,
    as_arguments,
    context_texts,
    read_before,
    strip_context,
    strip_context_pieces,
)
from workbench.evaluation.result_cache import digest
from workbench.store import provenance
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.traces import Trace
    from core_models.translator import Translator
    from workbench.store.translations import Translations

TARGETS = {"own": "the runs' own translations", "reference": "the references"}
AT_ONCE = 16  # sentences whose arrays are held


class Opened(NamedTuple):
    """A loaded model and the lock that lets one pass at a time into it."""

    translator: Translator
    lock: threading.Lock


def stamp(run: Run) -> tuple[float, int]:
    """Changes whenever the weights do. Raises RunError where there are none."""
    run.require_model()
    if not run.trained:
        raise RunError(f"{run.name} has no weights yet; train it: workbench resume {run.typed}")
    found = run.weights.stat()
    return found.st_mtime, found.st_size


@lru_cache(maxsize=2)
def opened(reference: str, stamp: tuple[float, int]) -> Opened:
    """The model of `Run.reference`, as long as its `stamp` is the same. Raises what loading does."""
    import core_models

    return Opened(core_models.load(reference), threading.Lock())


@dataclass(frozen=True)
class Target:
    """A translation to be forced: its text, or its pieces as the search wrote them. before: what stands before the
    sentence."""

    row: int
    source: str
    text: str = ""
    pieces: tuple[str, ...] = ()
    before: ContextSentences | None = None


@dataclass(frozen=True)
class Forced:
    """A forced pass: pieces of both sides as they were read, </s> among them; the arrays of the trace; of a text its
    log P (nats), NaN of pieces."""

    target: Target
    source_tokens: list[str]
    tokens: list[str]
    trace: Trace
    log_prob: float

    @property
    def own(self) -> Forced:
        """Without the sentences before, where these are joined to the source."""
        source_tokens = strip_context_pieces(self.source_tokens)
        return replace(self, source_tokens=source_tokens, trace=strip_context(self.trace, len(source_tokens)))


def force(
    model: Opened, targets: Sequence[Target], names: Sequence[str] = (), at_once: int = AT_ONCE
) -> Iterator[Forced]:
    """Force texts, or pieces, so many at once, and record arrays by name or pattern."""
    translator = model.translator
    for begin in range(0, len(targets), at_once):
        some = targets[begin : begin + at_once]
        sources, context = [one.source for one in some], as_arguments(*(one.before for one in some))
        with model.lock:
            if some[0].pieces:
                pieces = [list(one.pieces) for one in some]
                traces = translator.trace(sources, pieces, names, **context)
                passes = [(own, trace, float("nan")) for own, trace in zip(pieces, traces, strict=True)]
            else:
                scored = translator.score(sources, [one.text for one in some], trace=names, **context)
                passes = [(one.tokens, one.trace or {}, one.log_prob) for one in scored]
        for target, one in zip(some, passes, strict=True):
            yield Forced(target, source_tokens(translator, target), *one)


def source_tokens(translator: Translator, target: Target) -> list[str]:
    """What the encoder reads, </s> last: the sentences before too, where they are joined to the source."""
    from core_models.text.documents import joined

    vocabulary, use = translator.source_vocabulary, translator.context
    (ids,) = vocabulary.encode([target.source])
    if target.before is not None and use.joined:
        there = [text for text in target.before.sources if text is not None]
        ids = joined(ids, [use.fitted(one, "the sentence") for one in vocabulary.encode(there)])
    return [*vocabulary.pieces(ids), END]


@dataclass(frozen=True)
class Targets:
    """What is forced of a test set: translations of one of TARGETS; `run` has the test set, and made the own ones."""

    run: Run
    test: str
    kind: str
    sentences: tuple[Target, ...]

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def pieces(self) -> dict[int, tuple[str, ...]]:
        """What is forced of each sentence, by its row."""
        return {one.row: one.pieces for one in self.sentences}

    @property
    def outputs(self) -> list[str]:
        """The translations of all lines, where those before a sentence are read: of the kind that is forced."""
        return references_of(self.run, self.test) if self.kind == "reference" else self._translations.hypotheses

    def in_documents(self, translator: Translator) -> list[Target]:
        """Each with what a system reads before it."""
        use, test_set, outputs = translator.context, self._translations.test_set, self.outputs
        return [replace(one, before=read_before(use, test_set, one.row, outputs)) for one in self.sentences]

    def inputs(self, run: Run) -> dict[str, str]:
        """What a measurement of them by a run is computed from, for its `ResultCache`."""
        texts = [[one.row, one.source, one.text, one.pieces] for one in self.sentences]
        texts += context_texts(run, self._translations.test_set, self.outputs)
        return {"model": provenance.digests(run, "")["model"], "target": self.kind, "texts": digest(texts)}

    @property
    def _translations(self) -> Translations:
        return self.run.translations(self.test)


def references_of(run: Run, test: str) -> list[str]:
    """The references of a test set; raises RunError where it has none."""
    found = run.translations(test).test_set.references
    if found is None:
        raise RunError(f"the test set {test!r} has no references that could be forced; take the runs' own translations")
    return found


def targets_of(run: Run, test: str, kind: str, sentences: int | None) -> Targets:
    """The first so many sentences (None: all) with one of TARGETS; those that are empty are left out. Raises RunError,
    also where none is left."""
    if kind not in TARGETS:
        raise RunError(f"target {kind!r}: choose {' or '.join(TARGETS)}")
    run.require_model()
    translations = run.translations(test)
    sources = enumerate(translations.test_set.sources[:sentences])
    if kind == "reference":
        texts = references_of(run, test)[:sentences]
        found = [Target(row, source, text) for (row, source), text in zip(sources, texts, strict=True) if text.strip()]
    else:
        pieces = [tuple(detail["tokens"]) for detail in translations.details[:sentences]]
        found = [Target(row, source, "", own) for (row, source), own in zip(sources, pieces, strict=True) if own]
    if not found:
        raise RunError(f"{run.name}: there is nothing of {test!r} that could be forced; translate it again")
    return Targets(run, test, kind, tuple(found))


def force_in_documents(run: Run, targets: Targets, names: Sequence[str], at_once: int = AT_ONCE) -> Iterator[Forced]:
    """Force targets through a run, each in its document; traces are of the sentence's own source. Raises what opening
    a run does."""
    model = opened(run.reference, stamp(run))
    return (one.own for one in force(model, targets.in_documents(model.translator), names, at_once))
