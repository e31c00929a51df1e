"""What stands before a sentence in its document, as a run reads it: which runs read it, the texts, and other texts.

Knows test sets and runs, no model: how far a run reads is handed in (`Translator.context`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analyses.attention import END
from workbench.runs import Run, RunError
from workbench.translations import TestSet

if TYPE_CHECKING:
    from core_models.text.documents import ContextUse
    from core_models.traces import Trace, TraceArray

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
class Before:
    """The sentences before one, entry k the one k + 1 before it (None: there is none), and their translations, where
    these are read too."""

    sources: Lines
    outputs: Lines | None = None

    @property
    def there(self) -> int:
        """How many sentences there are."""
        return sum(text is not None for text in self.sources)


def readers(run: Run) -> dict[str, dict[str, Any]]:
    """The options of what reads the sentences before in a run, by its kind."""
    entries = [] if run.outside else run.config.model.mechanisms
    return {kind: options or {} for entry in entries for kind, options in entry.items() if kind in READERS}


def of_context(runs: Sequence[Run]) -> list[Run]:
    """The runs that read the sentences before."""
    return [run for run in runs if readers(run)]


def reach_of(run: Run) -> int:
    """How many sentences before one a run reads at most; none where it reads no context."""
    from core_models.config import parse
    from core_models.mechanisms.document_context import ContextOptions
    from core_models.systems import MECHANISMS

    found = [parse(MECHANISMS[kind].Options, options, where=kind) for kind, options in readers(run).items()]
    return max((one.context_sentences for one in found if isinstance(one, ContextOptions)), default=0)


def attending(run: Run) -> list[tuple[str, str]]:
    """The kinds and sides of what attends to the words of the sentences before."""
    return [
        (kind, side)
        for kind, options in readers(run).items()
        for side in READERS[kind]
        if options.get("side", "both") in (side, "both")
    ]


def of_translations(kind: str, side: str) -> bool:
    """Does what attends on a side look at translations of the sentences before, not at the sentences?"""
    return side == "decoder" and kind != "document_encoder"


def routing_context(runs: Sequence[Run]) -> list[Run]:
    """The runs that route the words of the sentences before to capsules; raises RunError where none does."""
    found = [run for run in runs if CAPSULES in readers(run)]
    if not found:
        raise RunError(f"{runs[0].name} routes no context to capsules; choose a run of qcn or qcn-reg")
    return found


def rows_before(test: TestSet, sentence: int, reach: int) -> tuple[int | None, ...]:
    """The rows of the `reach` sentences before one in its document, the nearest first; None where there is none."""
    documents = test.documents
    first = sentence
    while documents is not None and first > 0 and documents[first - 1] == documents[sentence]:
        first -= 1
        if sentence - first == reach:
            break
    return tuple(sentence - distance if sentence - distance >= first else None for distance in range(1, reach + 1))


def before(test: TestSet, sentence: int, reach: int, outputs: Sequence[str] | None = None) -> Before:
    """What stands before a sentence; outputs: the translations of all lines, where these are read."""
    rows = rows_before(test, sentence, reach)
    return Before(_lines(test.sources, rows), None if outputs is None else _lines(outputs, rows))


def of_another_document(
    test: TestSet, sentence: int, own: Before, outputs: Sequence[str] | None = None
) -> Before | None:
    """As many sentences as stand before one, from the next document that has them (the first comes after the last);
    None where there is no such document."""
    documents, reach = test.documents, len(own.sources)
    if documents is None or not own.there:
        return None
    for step in range(1, len(documents)):
        row = (sentence + step) % len(documents)
        if documents[row] == documents[sentence]:
            continue
        other = rows_before(test, row, reach)
        if sum(place is not None for place in other) == own.there:
            return Before(_lines(test.sources, other), None if outputs is None else _lines(outputs, other))
    return None


def given(*before: Before | None) -> dict[str, Any]:
    """Contexts of sentences as a translator takes them; nothing of a run that reads none."""
    known = [one for one in before if one is not None]
    if not known:
        return {}
    outputs = [list(one.outputs) for one in known if one.outputs is not None]
    return {"contexts": [list(one.sources) for one in known], "context_outputs": outputs or None}


def beside(use: ContextUse, test: TestSet, rows: Sequence[int], outputs: Sequence[str]) -> dict[str, Any]:
    """What a translator takes beside some sentences of a test set, by what it reads, so that each stands in its
    document; outputs: the translations of all lines."""
    if not use.sentences:
        return {}
    return given(*(before(test, row, use.sentences, outputs if use.outputs else None) for row in rows))


def texts_before(run: Run, test: TestSet, outputs: Sequence[str]) -> list[Any]:
    """All that may stand before the sentences of a test set, for the digest of a measurement; nothing of a run that
    reads none of it."""
    return [test.documents, test.sources, outputs] if readers(run) else []


def own_pieces(pieces: Sequence[str]) -> list[str]:
    """The pieces of a sentence itself, </s> last, of what an encoder reads: all, unless sentences before are joined."""
    ends = [place for place, piece in enumerate(pieces[:-1]) if piece == END]
    return list(pieces[ends[-1] + 1 :] if ends else pieces)


def own_source(trace: Trace, pieces: int) -> Trace:
    """A trace of the last `pieces` of the source alone: without the sentences before that are joined to one, so that
    what summed to one over the source may sum to less."""

    def own(array: TraceArray) -> TraceArray:
        axis = array.axes.index(SOURCE)
        length = array.values.shape[axis]
        return replace(array, values=array.values.take(range(length - pieces, length), axis))

    return {name: own(array) if SOURCE in array.axes else array for name, array in trace.items()}


def _lines(lines: Sequence[str], rows: Sequence[int | None]) -> Lines:
    return tuple(None if row is None else lines[row] for row in rows)
