"""What stands before a sentence in its document, as a run reads it: which runs read it, the texts, and other texts.

Knows test sets and runs, no model: how far a run reads is handed in (`Translator.context`).
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
# What reads the sentences before, and the sides on which it attends to their words, unless its options say one.
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
    """The sentences before one, entry k the one k + 1 before it (None: there is none), and their translations, where
    these are read too. after: how many entries, the last ones, are of the sentences after it, the next one first."""

    sources: Lines
    outputs: Lines | None = None
    after: int = 0

    @property
    def entries(self) -> list[int]:
        """The places of all entries as they stand in the document."""
        first = len(self.sources) - self.after
        return [*reversed(range(first)), *range(first, len(self.sources))]

    def distance(self, entry: int) -> int:
        """How many sentences before the sentence an entry stands; negative after it."""
        first = len(self.sources) - self.after
        return entry + 1 if entry < first else first - 1 - entry

    @property
    def there(self) -> int:
        """How many sentences there are."""
        return len(self.in_order)

    @property
    def in_order(self) -> list[str]:
        """The sentences that there are, as they stand in the document."""
        return [text for entry in self.entries if (text := self.sources[entry]) is not None]


def context_mechanisms(run: Run) -> dict[str, dict[str, Any]]:
    """The options of what reads the sentences before in a run, by its kind."""
    return {kind: options for kind, options in run.mechanism_options.items() if kind in READERS}


def context_aware_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs that read the sentences before."""
    return [run for run in runs if context_mechanisms(run)]


def context_window(run: Run) -> tuple[int, int]:
    """How many sentences before one a run reads at most, and how many after; none where it reads no context."""
    from core_models.mechanisms.document_context import ContextOptions
    from core_models.settings import parse
    from core_models.system_catalogue import MECHANISMS

    found = [parse(MECHANISMS[kind].Options, options, where=kind) for kind, options in context_mechanisms(run).items()]
    uses = [one.use() for one in found if isinstance(one, ContextOptions)]
    return max((use.sentences for use in uses), default=0), max((use.after for use in uses), default=0)


def reads_after(run: Run) -> bool:
    """Does a run read the sentences after one too? As `context_window` says, without loading torch."""
    return any(options.get("memory") == "offline" for options in context_mechanisms(run).values())


def attending(run: Run) -> list[tuple[str, str]]:
    """The kinds and sides of what attends to the words of the sentences before."""
    return [
        (kind, side)
        for kind, options in context_mechanisms(run).items()
        for side in READERS[kind]
        if options.get("side", "both") in (side, "both")
    ]


def of_translations(kind: str, side: str) -> bool:
    """Does what attends on a side look at translations of the sentences before, not at the sentences?"""
    return side == "decoder" and kind != "document_encoder"


def reads_translations(run: Run) -> bool:
    """Does a run read its own translations of the sentences before too?"""
    return any(of_translations(kind, side) for kind, side in attending(run))


def routing_context(runs: Sequence[Run]) -> list[Run]:
    """The runs that route the words of the sentences before to capsules; raises RunError where none does."""
    found = [run for run in runs if CAPSULES in context_mechanisms(run)]
    if not found:
        raise RunError(f"{runs[0].name} routes no context to capsules; choose a run of qcn or qcn-reg")
    return found


def context_rows(test: TestSet, sentence: int, reach: int, after: int = 0) -> tuple[int | None, ...]:
    """The rows of the `reach` sentences before one in its document, the nearest first, then of the `after` sentences
    after it; None where there is none."""

    def along(step: int, most: int) -> list[int | None]:
        documents, row, found = test.documents or [], sentence + step, list[int | None]()
        while len(found) < most and 0 <= row < len(documents) and documents[row] == documents[sentence]:
            found.append(row)
            row += step
        return [*found, *[None] * (most - len(found))]

    return (*along(-1, reach), *along(1, after))


def before(
    test: TestSet, sentence: int, reach: int, outputs: Sequence[str] | None = None, after: int = 0
) -> ContextSentences:
    """What stands before a sentence and, if that is read, after it; outputs: the translations of all lines, where these
    are read."""
    rows = context_rows(test, sentence, reach, after)
    return ContextSentences(_lines(test.sources, rows), None if outputs is None else _lines(outputs, rows), after)


def typed_context(text: str, reach: int) -> ContextSentences:
    """The last lines of a text that a run of this reach reads, the nearest first; of a run that reads none all of them,
    which it will refuse."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return ContextSentences(tuple(reversed(lines))[: reach or None])


def of_another_document(
    test: TestSet, sentence: int, own: ContextSentences, outputs: Sequence[str] | None = None
) -> ContextSentences | None:
    """As many sentences as stand before one, from the next document that has them (the first comes after the last);
    None where there is no such document."""
    documents, reach = test.documents, len(own.sources) - own.after
    if documents is None or not own.there:
        return None
    for step in range(1, len(documents)):
        row = (sentence + step) % len(documents)
        if documents[row] == documents[sentence]:
            continue
        other = before(test, row, reach, outputs, own.after)
        if other.there == own.there:
            return other
    return None


def as_arguments(*before: ContextSentences | None) -> dict[str, Any]:
    """Contexts of sentences as a translator takes them; nothing of a run that reads none."""
    known = [one for one in before if one is not None]
    if not known:
        return {}
    outputs = [list(one.outputs) for one in known if one.outputs is not None]
    return {"contexts": [list(one.sources) for one in known], "context_outputs": outputs or None}


def read_before(use: ContextUse, test: TestSet, sentence: int, outputs: Sequence[str]) -> ContextSentences | None:
    """What is read before a sentence of a test set, so that it stands in its document; outputs: the translations of all
    lines. None of a system that reads single sentences."""
    if not use.sentences:
        return None
    return before(test, sentence, use.sentences, outputs if use.outputs else None, use.after)


def context_arguments(use: ContextUse, test: TestSet, rows: Sequence[int], outputs: Sequence[str]) -> dict[str, Any]:
    """What a translator takes beside some sentences of a test set: `read_before` of each."""
    return as_arguments(*(read_before(use, test, row, outputs) for row in rows))


def own_outputs(translator: Translator, contexts: Sequence[Sequence[str | None]]) -> list[list[str | None]]:
    """The translations of the sentences before, entry by entry: what a system itself makes of each list of them, as a
    document of its own."""
    written = [[text for text in reversed(lines) if text is not None] for lines in contexts]
    documents = [str(number) for number, lines in enumerate(written) for _ in lines]
    flat = [text for lines in written for text in lines]
    made = iter(translator.translate(flat, documents, n_best=1)) if flat else iter(())
    found: list[list[str | None]] = []
    for lines, own in zip(contexts, written, strict=True):
        outputs = [next(made).text for _ in own][::-1]
        found.append([*outputs, *[None] * (len(lines) - len(own))])
    return found


def context_texts(run: Run, test: TestSet, outputs: Sequence[str]) -> list[Any]:
    """All that may stand before the sentences of a test set, for the digest of a measurement; nothing of a run that
    reads none of it."""
    return [test.documents, test.sources, outputs] if context_mechanisms(run) else []


def strip_context_pieces(pieces: Sequence[str]) -> list[str]:
    """The pieces of a sentence itself, </s> last, of what an encoder reads: all, unless sentences before are joined."""
    ends = [place for place, piece in enumerate(pieces[:-1]) if piece == END]
    return list(pieces[ends[-1] + 1 :] if ends else pieces)


def strip_context(trace: Trace, pieces: int) -> Trace:
    """A trace of the last `pieces` of the source alone: without the sentences before that are joined to one, so that
    what summed to one over the source may sum to less."""

    def own(array: TraceArray) -> TraceArray:
        axis = array.axes.index(SOURCE)
        length = array.values.shape[axis]
        return replace(array, values=array.values.take(range(length - pieces, length), axis))

    return {name: own(array) if SOURCE in array.axes else array for name, array in trace.items()}


def _lines(lines: Sequence[str], rows: Sequence[int | None]) -> Lines:
    return tuple(None if row is None else lines[row] for row in rows)
