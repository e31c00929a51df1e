"""What a sentence's context changes, live: its translation is forced again with words or sentences of it left out.

To leave a word out of a set of capsules is to mask it; a system that reads the order sees a sentence without the word.
Knows runs and the translator, no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from workbench.evaluation.document_context import CAPSULES, ContextSentences, Lines, of_another_document
from workbench.evaluation.forced_decoding import Target, force, opened, stamp
from workbench.evaluation.live_trace import trace_sentence
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from core_models.traces import Trace

WORD, SENTENCE, NONE, OTHER, BACKWARDS, SWAPPED = (
    "word", "sentence", "no context", "another document's", "words backwards", "sentences swapped",
)  # fmt: skip
MOST_FORCED = 400  # passes of one sentence
_COUPLINGS, _WORDS, _DISTANCES = f"{CAPSULES}.couplings", "context.words", "context.distance"
_NAMES = ("log_prob", _COUPLINGS, _WORDS, _DISTANCES)


@dataclass(frozen=True)
class Variant:
    """A context instead of the own one. what: how it was changed; distance and place: `Before.distance` of the sentence
    and the word in it (from 0) that is left out, of its source or of its translation."""

    what: str
    before: ContextSentences
    side: str = "source"
    distance: int = 0
    place: int = -1
    word: str = ""


def variants(own: ContextSentences, other: ContextSentences | None = None) -> list[Variant]:
    """Every context that is tried: without each word, each sentence, all of it; another document's; in other orders.

    other: as many sentences of another document.
    """
    found = [Variant("", own)]
    sides = [("source", own.sources)] + ([] if own.outputs is None else [("translation", own.outputs)])
    for side, lines in sides:
        for entry in own.entries:
            words = (lines[entry] or "").split()
            for place, word in enumerate(words):
                line = " ".join(words[:place] + words[place + 1 :])
                found.append(Variant(WORD, _with(own, side, entry, line), side, own.distance(entry), place, word))
    there = [entry for entry in own.entries if own.sources[entry] is not None]
    found += [Variant(SENTENCE, _without(own, [entry]), distance=own.distance(entry)) for entry in there]
    found.append(Variant(NONE, _without(own, there)))
    found += [] if other is None else [Variant(OTHER, other)]
    found.append(Variant(BACKWARDS, _changed(own, _backwards)))
    if len(there) > 1:
        found.append(Variant(SWAPPED, _swapped(own)))
    return found


def _with(own: ContextSentences, side: str, entry: int, line: str) -> ContextSentences:
    def changed(lines: Lines) -> Lines:
        return (*lines[:entry], line, *lines[entry + 1 :])

    if side == "source":
        return replace(own, sources=changed(own.sources))
    return replace(own, outputs=changed(own.outputs or ()))


def _changed(own: ContextSentences, change: Callable[[Lines], Lines]) -> ContextSentences:
    outputs = None if own.outputs is None else change(own.outputs)
    return replace(own, sources=change(own.sources), outputs=outputs)


def _without(own: ContextSentences, entries: Sequence[int]) -> ContextSentences:
    return _changed(own, lambda lines: tuple(None if entry in entries else line for entry, line in enumerate(lines)))


def _backwards(lines: Lines) -> Lines:
    """The words of every sentence in the other order."""
    return tuple(None if line is None else " ".join(reversed(line.split())) for line in lines)


def _swapped(own: ContextSentences) -> ContextSentences:
    """The sentences that are there in the other order of the document, where they were."""
    there = [entry for entry in own.entries if own.sources[entry] is not None]
    other = dict(zip(there, reversed(there), strict=True))
    return _changed(own, lambda lines: tuple(lines[other.get(entry, entry)] for entry in range(len(lines))))


def changes(run: Run, test: str, sentence: int, target: str = "own", text: str = "") -> pd.DataFrame:
    """A row a variant: what, side, distance, place, word, log_prob (of the translation), change (nats), routing.

    The first row is the context as it is. routing: how far the couplings of the words that are left moved in the last
    iteration (`analyses.context_routing.moved`), each word beside itself where the order is another; NaN where there
    are none, or other words. Raises RunError where the run reads no context, or nothing of what it reads is there.
    """
    import pandas as pd

    looked = trace_sentence(run, test, sentence, target, text)
    if looked.before is None:
        raise RunError(f"{run.name} reads no sentence but its own; choose a run of qcn, han, san or another reader")
    if not looked.before.there:
        raise RunError(f"sentence {sentence} of {test!r} has nothing before it; choose another sentence")
    translations = run.translations(test)
    lines = translations.test_set.references if target == "reference" else translations.hypotheses
    outputs = None if looked.before.outputs is None else lines
    other = of_another_document(translations.test_set, sentence, looked.before, outputs)
    source = translations.test_set.sources[sentence]
    rows = _changes(run.reference, stamp(run), source, looked.target, looked.before, other)
    return pd.DataFrame([dict(row) for row in rows])


Row = tuple[tuple[str, object], ...]


@lru_cache(maxsize=32)
def _changes(
    reference: str,
    stamp: tuple[float, int],
    source: str,
    target: tuple[str, ...],
    own: ContextSentences,
    other: ContextSentences | None,
) -> tuple[Row, ...]:
    tried = variants(own, other)
    if len(tried) > MOST_FORCED:
        raise RunError(
            f"{len(tried)} contexts are too many to be forced while somebody waits, at most {MOST_FORCED}: the "
            "sentences around it are too long; choose another sentence"
        )
    targets = [Target(0, source, "", target, one.before) for one in tried]
    passes = force(opened(reference, stamp), targets, _NAMES, MOST_FORCED)
    return tuple(_rows(tried, [one.trace for one in passes]))


def _rows(tried: Sequence[Variant], traces: Sequence[Trace]) -> Iterator[Row]:
    base = traces[0]
    as_is = float(base["log_prob"].values.sum())
    for one, trace in zip(tried, traces, strict=True):
        log_prob = float(trace["log_prob"].values.sum())
        yield (
            ("what", one.what), ("side", one.side), ("distance", one.distance), ("place", one.place),
            ("word", one.word), ("log_prob", log_prob), ("change", log_prob - as_is),
            ("routing", _moved(base, trace, swapped=one.what == SWAPPED)),
        )  # fmt: skip


def _moved(base: Trace, trace: Trace, swapped: bool) -> float:
    """How far the last couplings of the pieces moved that both have: the base's without one stretch, or reordered."""
    from analyses.context_routing import moved

    if _COUPLINGS not in base:
        return float("nan")
    kept = _kept(_pieces(base), _pieces(trace, swapped))
    if kept is None:
        return float("nan")
    return moved(base[_COUPLINGS].values[-1][kept], trace[_COUPLINGS].values[-1])


def _pieces(trace: Trace, swapped: bool = False) -> list[tuple[int, int]]:
    """Each context piece with its distance; of swapped sentences with the distance that these have in the document."""
    distances = trace[_DISTANCES].values.tolist()
    there = sorted(set(distances))
    own = dict(zip(there, reversed(there) if swapped else there, strict=True))
    return list(zip(map(own.__getitem__, distances), trace[_WORDS].values.tolist(), strict=True))


def _kept(whole: Sequence[tuple[int, int]], part: Sequence[tuple[int, int]]) -> np.ndarray | None:
    """Places of the whole that make the part, if that is the whole without one stretch (or all of it) or has the same
    pieces in another order; else None."""
    missing = len(whole) - len(part)
    if missing < 0:
        return None
    first = next((place for place, (a, b) in enumerate(zip(whole, part, strict=False)) if a != b), len(part))
    if list(whole[first + missing :]) == list(part[first:]):
        return np.r_[:first, first + missing : len(whole)].astype(int)
    if sorted(whole) != sorted(part):
        return None
    kept = np.empty(len(part), dtype=int)
    kept[sorted(range(len(part)), key=part.__getitem__)] = sorted(range(len(whole)), key=whole.__getitem__)
    return kept
