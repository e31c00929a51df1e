"""Document context of sentences: which runs read it, its texts, and substitutes from other documents.

Knows test sets and runs, no model: how far a run reads is an argument (`Translator.context`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analyses.attention import END
from workbench.store.runs import Run, RunError
from workbench.store.translations import TestSet

if TYPE_CHECKING:
    from core_models.text.documents import ContextUse
    from core_models.traces import Trace, TraceArray
    from core_models.translator import Translator

CAPSULES = "query_capsules"
# Mechanisms that read the sentences before, and the sides on which they attend to words unless an option names one.
READERS = {
    CAPSULES: (),
    "document_encoder": ("encoder", "decoder"),
    "hierarchical_attention": ("encoder", "decoder"),
    "selective_attention": ("encoder", "decoder"),
    "concatenation": (),
}
SOURCE = "source"  # the axis of a trace
Lines = tuple[str | None, ...]


@dataclass(frozen=True)
class ContextSentences:
    """The context of a sentence: entry k is the sentence k + 1 before it, None if there is none.

    outputs: their translations, if these are read too. after: number of entries, at the end, of sentences after it,
    the next one first.
    """

    sources: Lines
    outputs: Lines | None = None
    after: int = 0

    @property
    def entries(self) -> list[int]:
        """The indices of all entries in document order."""
        first = len(self.sources) - self.after
        return [*reversed(range(first)), *range(first, len(self.sources))]

    def distance(self, entry: int) -> int:
        """The distance of an entry in sentences: positive before the sentence, negative after it."""
        first = len(self.sources) - self.after
        return entry + 1 if entry < first else first - 1 - entry

    @property
    def count(self) -> int:
        """The number of sentences that exist."""
        return len(self.in_order)

    @property
    def in_order(self) -> list[str]:
        """The existing sentences in document order."""
        return [text for entry in self.entries if (text := self.sources[entry]) is not None]


def context_mechanisms(run: Run) -> dict[str, dict[str, Any]]:
    """The options of a run's mechanisms that read context, by mechanism name."""
    return {kind: options for kind, options in run.mechanism_options.items() if kind in READERS}


def context_aware_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs that read document context."""
    return [run for run in runs if context_mechanisms(run)]


def context_window(run: Run) -> tuple[int, int]:
    """The maximal numbers of sentences before and after one that a run reads; 0 without context."""
    from core_models.mechanisms.document_context import ContextOptions
    from core_models.settings import parse
    from core_models.system_catalogue import MECHANISMS

    mechanism_options = [
        parse(MECHANISMS[kind].Options, options, where=kind) for kind, options in context_mechanisms(run).items()
    ]
    uses = [mechanism.use() for mechanism in mechanism_options if isinstance(mechanism, ContextOptions)]
    return max((use.sentences for use in uses), default=0), max((use.after for use in uses), default=0)


def reads_after(run: Run) -> bool:
    """Return True if a run also reads sentences after one, as `context_window` says, but without importing torch."""
    return any(options.get("memory") == "offline" for options in context_mechanisms(run).values())


def attending(run: Run) -> list[tuple[str, str]]:
    """Mechanism and side of each attention to the words of context sentences."""
    return [
        (kind, side)
        for kind, options in context_mechanisms(run).items()
        for side in READERS[kind]
        if options.get("side", "both") in (side, "both")
    ]


def of_translations(kind: str, side: str) -> bool:
    """Return True if a mechanism's attention on a side reads translations of context sentences, not their sources."""
    return side == "decoder" and kind != "document_encoder"


def reads_translations(run: Run) -> bool:
    """Return True if a run also reads its own translations of the sentences before."""
    return any(of_translations(kind, side) for kind, side in attending(run))


def routing_context(runs: Sequence[Run]) -> list[Run]:
    """The runs that route words of context sentences to capsules; raises RunError if there is none."""
    routing_runs = [run for run in runs if CAPSULES in context_mechanisms(run)]
    if not routing_runs:
        raise RunError(f"{runs[0].name} routes no context to capsules; choose a run of qcn or qcn-reg")
    return routing_runs


def context_rows(test_set: TestSet, sentence: int, reach: int, after: int = 0) -> tuple[int | None, ...]:
    """The rows of the `reach` sentences before one in its document, nearest first, then of the `after` next ones.

    Missing sentences are None.
    """

    def along(step: int, most: int) -> list[int | None]:
        documents, row, rows = test_set.documents or [], sentence + step, list[int | None]()
        while len(rows) < most and 0 <= row < len(documents) and documents[row] == documents[sentence]:
            rows.append(row)
            row += step
        return [*rows, *[None] * (most - len(rows))]

    return (*along(-1, reach), *along(1, after))


def next_with_context(run: Run, test_set: TestSet, sentence: int) -> int | None:
    """The next sentence that has context for a run, else the first one; None if no sentence has any."""
    after = int(reads_after(run))
    rows = [row for row in range(len(test_set.sources)) if set(context_rows(test_set, row, 1, after)) != {None}]
    return next((row for row in rows if row > sentence), rows[0] if rows else None)


def before(
    test_set: TestSet, sentence: int, reach: int, outputs: Sequence[str] | None = None, after: int = 0
) -> ContextSentences:
    """The context of a sentence: sentences before it and, with `after`, those after it.

    outputs: the translations of all lines, if the run reads these.
    """
    rows = context_rows(test_set, sentence, reach, after)
    return ContextSentences(_lines(test_set.sources, rows), None if outputs is None else _lines(outputs, rows), after)


def typed_context(text: str, reach: int) -> ContextSentences:
    """The last `reach` lines of a typed text as context, nearest first.

    With a reach of 0 all lines are kept, so that the run refuses them.
    """
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return ContextSentences(tuple(reversed(lines))[: reach or None])


def of_another_document(
    test_set: TestSet, sentence: int, context: ContextSentences, outputs: Sequence[str] | None = None
) -> ContextSentences | None:
    """A context of the same size from the next document that has one, cyclically; None if there is no such document."""
    documents, reach = test_set.documents, len(context.sources) - context.after
    if documents is None or not context.count:
        return None
    for step in range(1, len(documents)):
        row = (sentence + step) % len(documents)
        if documents[row] == documents[sentence]:
            continue
        other = before(test_set, row, reach, outputs, context.after)
        if other.count == context.count:
            return other
    return None


def as_arguments(*before: ContextSentences | None) -> dict[str, Any]:
    """Contexts of sentences as a translator's arguments; empty for a run that reads none."""
    contexts = [context for context in before if context is not None]
    if not contexts:
        return {}
    outputs = [list(context.outputs) for context in contexts if context.outputs is not None]
    return {"contexts": [list(context.sources) for context in contexts], "context_outputs": outputs or None}


def read_before(use: ContextUse, test_set: TestSet, sentence: int, outputs: Sequence[str]) -> ContextSentences | None:
    """The context of a sentence of a test set in its document; None for a system that reads single sentences.

    outputs: the translations of all lines.
    """
    if not use.sentences:
        return None
    return before(test_set, sentence, use.sentences, outputs if use.outputs else None, use.after)


def context_arguments(
    use: ContextUse, test_set: TestSet, rows: Sequence[int], outputs: Sequence[str]
) -> dict[str, Any]:
    """The context arguments of a translator for some sentences of a test set: `read_before` of each."""
    return as_arguments(*(read_before(use, test_set, row, outputs) for row in rows))


def own_outputs(translator: Translator, contexts: Sequence[Sequence[str | None]]) -> list[list[str | None]]:
    """The system's own translations of context sentences, entry by entry; each list is translated as one document."""
    sentences = [[text for text in reversed(lines) if text is not None] for lines in contexts]
    documents = [str(number) for number, lines in enumerate(sentences) for _ in lines]
    flat = [text for lines in sentences for text in lines]
    translations = iter(translator.translate(flat, documents, n_best=1)) if flat else iter(())
    outputs_by_entry: list[list[str | None]] = []
    for lines, texts in zip(contexts, sentences, strict=True):
        outputs = [next(translations).text for _ in texts][::-1]
        outputs_by_entry.append([*outputs, *[None] * (len(lines) - len(texts))])
    return outputs_by_entry


def context_texts(run: Run, test_set: TestSet, outputs: Sequence[str]) -> list[Any]:
    """All possible context of a test set's sentences, for the digest of a measurement; empty if the run reads none."""
    return [test_set.documents, test_set.sources, outputs] if context_mechanisms(run) else []


def strip_context_pieces(pieces: Sequence[str]) -> list[str]:
    """The pieces of the sentence itself, </s> last, from an encoder's input with or without joined context."""
    ends = [position for position, piece in enumerate(pieces[:-1]) if piece == END]
    return list(pieces[ends[-1] + 1 :] if ends else pieces)


def strip_context(trace: Trace, pieces: int) -> Trace:
    """A trace restricted to the last `pieces` of the source, i.e. without joined context sentences.

    Weights that summed to one over the whole source may then sum to less.
    """

    def without_context(array: TraceArray) -> TraceArray:
        axis = array.axes.index(SOURCE)
        length = array.values.shape[axis]
        return replace(array, values=array.values.take(range(length - pieces, length), axis))

    return {name: without_context(array) if SOURCE in array.axes else array for name, array in trace.items()}


def _lines(lines: Sequence[str], rows: Sequence[int | None]) -> Lines:
    return tuple(None if row is None else lines[row] for row in rows)
