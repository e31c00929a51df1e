"""Ablation of a sentence's context: forced decoding of its translation without words or sentences of the context.

For capsules, leaving out a word equals masking it; order-sensitive systems read a sentence without the word.
Imports no figure code.
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
MAX_PASSES = 400  # forward passes for one sentence
_COUPLINGS, _WORDS, _DISTANCES = f"{CAPSULES}.couplings", "context.words", "context.distance"
_NAMES = ("log_prob", _COUPLINGS, _WORDS, _DISTANCES)


@dataclass(frozen=True)
class Variant:
    """Changed context of a sentence.

    change: its kind; distance: `ContextSentences.distance` of the sentence that is left out or changed; word_index: of
    the word that is left out of it, from 0; side: in its source or in its translation.
    """

    change: str
    before: ContextSentences
    side: str = "source"
    distance: int = 0
    word_index: int = -1
    word: str = ""


def context_variants(context: ContextSentences, other: ContextSentences | None = None) -> list[Variant]:
    """List the contexts to try: without each word, each sentence, or all; from another document; in other orders.

    The first variant is the unchanged context. other: a context of as many sentences from another document.
    """
    variant_list = [Variant("", context)]
    sides = [("source", context.sources)] + ([] if context.outputs is None else [("translation", context.outputs)])
    for side, lines in sides:
        for entry in context.entries:
            words = (lines[entry] or "").split()
            for index, word in enumerate(words):
                line = " ".join(words[:index] + words[index + 1 :])
                variant_list.append(
                    Variant(WORD, _replace_line(context, side, entry, line), side, context.distance(entry), index, word)
                )
    present = [entry for entry in context.entries if context.sources[entry] is not None]
    variant_list += [
        Variant(SENTENCE, _without_sentences(context, [entry]), distance=context.distance(entry)) for entry in present
    ]
    variant_list.append(Variant(NONE, _without_sentences(context, present)))
    variant_list += [] if other is None else [Variant(OTHER, other)]
    variant_list.append(Variant(BACKWARDS, _map_lines(context, _reverse_words)))
    if len(present) > 1:
        variant_list.append(Variant(SWAPPED, _reverse_sentences(context)))
    return variant_list


def _replace_line(context: ContextSentences, side: str, entry: int, line: str) -> ContextSentences:
    def replaced(lines: Lines) -> Lines:
        return (*lines[:entry], line, *lines[entry + 1 :])

    if side == "source":
        return replace(context, sources=replaced(context.sources))
    return replace(context, outputs=replaced(context.outputs or ()))


def _map_lines(context: ContextSentences, change: Callable[[Lines], Lines]) -> ContextSentences:
    outputs = None if context.outputs is None else change(context.outputs)
    return replace(context, sources=change(context.sources), outputs=outputs)


def _without_sentences(context: ContextSentences, entries: Sequence[int]) -> ContextSentences:
    return _map_lines(
        context, lambda lines: tuple(None if entry in entries else line for entry, line in enumerate(lines))
    )


def _reverse_words(lines: Lines) -> Lines:
    """Reverse the words of each sentence."""
    return tuple(None if line is None else " ".join(reversed(line.split())) for line in lines)


def _reverse_sentences(context: ContextSentences) -> ContextSentences:
    """Reverse the order of the sentences; missing sentences stay at their positions."""
    present = [entry for entry in context.entries if context.sources[entry] is not None]
    swapped = dict(zip(present, reversed(present), strict=True))
    return _map_lines(context, lambda lines: tuple(lines[swapped.get(entry, entry)] for entry in range(len(lines))))


def changes(run: Run, test: str, sentence: int, target: str = "own", text: str = "") -> pd.DataFrame:
    """Score the translation in each context variant, one row per variant; the first row is the unchanged context.

    Columns: what, side, distance, place, word, log_prob (of the translation), change (nats), routing. routing: change
    of the couplings of the remaining words in the last iteration (`analyses.context_routing.moved`), words matched if
    their order differs; NaN without couplings or with other words. Raises RunError if the run reads no context or the
    sentence has none.
    """
    import pandas as pd

    trace = trace_sentence(run, test, sentence, target, text)
    if trace.before is None:
        raise RunError(f"{run.name} reads no context; choose a run of qcn, han, san or another system with context")
    if not trace.before.count:
        raise RunError(f"sentence {sentence} of {test!r} has no sentence before it; choose another sentence")
    translations = run.translations(test)
    lines = translations.test_set.references if target == "reference" else translations.hypotheses
    outputs = None if trace.before.outputs is None else lines
    other = of_another_document(translations.test_set, sentence, trace.before, outputs)
    source = translations.test_set.sources[sentence]
    rows = _changes(run.reference, stamp(run), source, trace.target, trace.before, other)
    return pd.DataFrame([dict(row) for row in rows])


Row = tuple[tuple[str, object], ...]


@lru_cache(maxsize=32)
def _changes(
    reference: str,
    stamp: tuple[float, int],
    source: str,
    target: tuple[str, ...],
    context: ContextSentences,
    other: ContextSentences | None,
) -> tuple[Row, ...]:
    variant_list = context_variants(context, other)
    if len(variant_list) > MAX_PASSES:
        raise RunError(
            f"{len(variant_list)} contexts would take too long, at most {MAX_PASSES} are allowed: the "
            "surrounding sentences are too long; choose another sentence"
        )
    targets = [Target(0, source, "", target, item.before) for item in variant_list]
    passes = force(opened(reference, stamp), targets, _NAMES, MAX_PASSES)
    return tuple(_rows(variant_list, [item.trace for item in passes]))


def _rows(variant_list: Sequence[Variant], traces: Sequence[Trace]) -> Iterator[Row]:
    base = traces[0]
    base_log_prob = float(base["log_prob"].values.sum())
    for variant, trace in zip(variant_list, traces, strict=True):
        log_prob = float(trace["log_prob"].values.sum())
        yield (
            ("what", variant.change), ("side", variant.side), ("distance", variant.distance),
            ("place", variant.word_index), ("word", variant.word), ("log_prob", log_prob),
            ("change", log_prob - base_log_prob),
            ("routing", _coupling_change(base, trace, swapped=variant.change == SWAPPED)),
        )  # fmt: skip


def _coupling_change(base: Trace, trace: Trace, swapped: bool) -> float:
    """Change of the last couplings of the pieces in both traces; NaN if the pieces cannot be matched."""
    from analyses.context_routing import moved

    if _COUPLINGS not in base:
        return float("nan")
    indices = _matching_indices(_pieces(base), _pieces(trace, swapped))
    if indices is None:
        return float("nan")
    return moved(base[_COUPLINGS].values[-1][indices], trace[_COUPLINGS].values[-1])


def _pieces(trace: Trace, swapped: bool = False) -> list[tuple[int, int]]:
    """Context pieces as (distance in the document, piece)."""
    distances = trace[_DISTANCES].values.tolist()
    present = sorted(set(distances))
    in_document = dict(zip(present, reversed(present) if swapped else present, strict=True))
    return list(zip(map(in_document.__getitem__, distances), trace[_WORDS].values.tolist(), strict=True))


def _matching_indices(whole: Sequence[tuple[int, int]], part: Sequence[tuple[int, int]]) -> np.ndarray | None:
    """Indices of `whole` that give `part`, or None if there are none.

    `part` must be `whole` without one stretch of pieces, or the same pieces in another order.
    """
    missing_count = len(whole) - len(part)
    if missing_count < 0:
        return None
    first = next((index for index, (a, b) in enumerate(zip(whole, part, strict=False)) if a != b), len(part))
    if list(whole[first + missing_count :]) == list(part[first:]):
        return np.r_[:first, first + missing_count : len(whole)].astype(int)
    if sorted(whole) != sorted(part):
        return None
    indices = np.empty(len(part), dtype=int)
    indices[sorted(range(len(part)), key=part.__getitem__)] = sorted(range(len(whole)), key=whole.__getitem__)
    return indices
