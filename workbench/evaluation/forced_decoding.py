"""Forced decoding of translations by a run, each sentence in its document, with traces.

All measures of forced translations use this module. Small models stay loaded; a run that was trained further is loaded
again. Knows test sets and runs; torch is imported with the first forced sentence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
KEPT_BYTES = 2**31  # of the parameters of models that stay loaded


class Opened(NamedTuple):
    """A loaded model and the lock that serializes passes through it."""

    translator: Translator
    lock: threading.Lock


_models: OrderedDict[tuple[str, tuple[float, int]], Opened] = OrderedDict()  # the one used last at the end
_lock = threading.Lock()


def stamp(run: Run) -> tuple[float, int]:
    """Time and size of the weights file, which change with the weights. Raises RunError without weights."""
    run.require_model()
    if not run.trained:
        raise RunError(f"{run.name} has no weights yet; train it: workbench resume {run.typed}")
    status = run.weights.stat()
    return status.st_mtime, status.st_size


def opened(reference: str, stamp: tuple[float, int]) -> Opened:
    """The loaded model of `Run.reference`, cached while its `stamp` is the same. Raises the errors of loading.

    The last model stays loaded, and those before it while all their parameters have KEPT_BYTES at most.
    """
    import core_models

    key = reference, stamp
    with _lock:
        if key in _models:
            _models.move_to_end(key)
            return _models[key]
    model = Opened(core_models.load(reference), threading.Lock())
    with _lock:
        for outdated in [other for other in _models if other[0] == reference]:  # of earlier weights
            del _models[outdated]
        _models[key] = model
        while len(_models) > 1 and sum(map(_parameter_bytes, _models.values())) > KEPT_BYTES:
            _models.popitem(last=False)
    return model


def _parameter_bytes(model: Opened) -> int:
    return sum(parameter.nbytes for system in model.translator.systems for parameter in system.parameters())


@dataclass(frozen=True)
class Target:
    """A translation to be forced: its text, or its pieces as the search wrote them.

    before: the sentences before it that the run reads.
    """

    row: int
    source: str
    text: str = ""
    pieces: tuple[str, ...] = ()
    before: ContextSentences | None = None


@dataclass(frozen=True)
class Forced:
    """A forced pass: pieces of both sides as they were read, with </s>, and the arrays of the trace.

    log_prob: log P of a forced text in nats; NaN for forced pieces.
    """

    target: Target
    source_tokens: list[str]
    tokens: list[str]
    trace: Trace
    log_prob: float

    @property
    def without_context(self) -> Forced:
        """The pass without the context sentences that are joined to the source."""
        source_tokens = strip_context_pieces(self.source_tokens)
        return replace(self, source_tokens=source_tokens, trace=strip_context(self.trace, len(source_tokens)))


def force(
    model: Opened, targets: Sequence[Target], names: Sequence[str] = (), at_once: int = AT_ONCE
) -> Iterator[Forced]:
    """Force texts or pieces in batches of `at_once` and record arrays by name or pattern."""
    translator = model.translator
    for begin in range(0, len(targets), at_once):
        batch = targets[begin : begin + at_once]
        sources, context = [target.source for target in batch], as_arguments(*(target.before for target in batch))
        with model.lock:
            if batch[0].pieces:
                pieces = [list(target.pieces) for target in batch]
                traces = translator.trace(sources, pieces, names, **context)
                passes = [(tokens, trace, float("nan")) for tokens, trace in zip(pieces, traces, strict=True)]
            else:
                scored = translator.score(sources, [target.text for target in batch], trace=names, **context)
                passes = [(score.tokens, score.trace or {}, score.log_prob) for score in scored]
        for target, (tokens, trace, log_prob) in zip(batch, passes, strict=True):
            yield Forced(target, source_tokens(translator, target), tokens, trace, log_prob)


def source_tokens(translator: Translator, target: Target) -> list[str]:
    """The pieces that the encoder reads, </s> last, with context sentences that are joined to the source."""
    from core_models.text.documents import prepend_context

    vocabulary, use = translator.source_vocabulary, translator.context
    (ids,) = vocabulary.encode([target.source])
    if target.before is not None and use.joined:
        context_texts = [text for text in target.before.sources if text is not None]
        ids = prepend_context(
            ids, [use.fit(context_ids, "the sentence") for context_ids in vocabulary.encode(context_texts)]
        )
    return [*vocabulary.pieces(ids), END]


@dataclass(frozen=True)
class Targets:
    """Translations of a test set to be forced, of one of TARGETS; `run` has the test set and made its own outputs."""

    run: Run
    test: str
    kind: str
    sentences: tuple[Target, ...]

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def pieces(self) -> dict[int, tuple[str, ...]]:
        """The forced pieces of each sentence, by its row."""
        return {target.row: target.pieces for target in self.sentences}

    @property
    def outputs(self) -> list[str]:
        """The translations of all lines, of the forced kind, for runs that read translations before a sentence."""
        return references_of(self.run, self.test) if self.kind == "reference" else self._translations.hypotheses

    def in_documents(self, translator: Translator) -> list[Target]:
        """Each target with the context that a system reads before it."""
        use, test_set, outputs = translator.context, self._translations.test_set, self.outputs
        return [replace(target, before=read_before(use, test_set, target.row, outputs)) for target in self.sentences]

    def inputs(self, run: Run) -> dict[str, str]:
        """The inputs of a measurement of them by a run, for its `ResultCache`."""
        texts = [[target.row, target.source, target.text, target.pieces] for target in self.sentences]
        texts += context_texts(run, self._translations.test_set, self.outputs)
        return {"model": provenance.digests(run, "")["model"], "target": self.kind, "texts": digest(texts)}

    @property
    def _translations(self) -> Translations:
        return self.run.translations(self.test)


def references_of(run: Run, test: str) -> list[str]:
    """The references of a test set; raises RunError if it has none."""
    references = run.translations(test).test_set.references
    if references is None:
        raise RunError(f"the test set {test!r} has no references that could be forced; take the runs' own translations")
    return references


def targets_of(run: Run, test: str, kind: str, sentences: int | None) -> Targets:
    """Targets of the first `sentences` sentences (None: all), without empty ones.

    kind: one of TARGETS. Raises RunError, also if no target is left.
    """
    if kind not in TARGETS:
        raise RunError(f"target {kind!r}: choose {' or '.join(TARGETS)}")
    run.require_model()
    translations = run.translations(test)
    sources = enumerate(translations.test_set.sources[:sentences])
    if kind == "reference":
        texts = references_of(run, test)[:sentences]
        targets = [
            Target(row, source, text) for (row, source), text in zip(sources, texts, strict=True) if text.strip()
        ]
    else:
        pieces = [tuple(detail["tokens"]) for detail in translations.details[:sentences]]
        targets = [
            Target(row, source, "", target_pieces)
            for (row, source), target_pieces in zip(sources, pieces, strict=True)
            if target_pieces
        ]
    if not targets:
        raise RunError(f"{run.name}: there is nothing of {test!r} that could be forced; translate it again")
    return Targets(run, test, kind, tuple(targets))


def force_in_documents(run: Run, targets: Targets, names: Sequence[str], at_once: int = AT_ONCE) -> Iterator[Forced]:
    """Force targets through a run, each in its document; traces cover the sentence's own source only.

    Raises the errors of opening a run.
    """
    model = opened(run.reference, stamp(run))
    return (forced.without_context for forced in force(model, targets.in_documents(model.translator), names, at_once))
