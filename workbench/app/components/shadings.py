"""Which words of the lines of a sentence belong together: attention, gold alignment, pronouns and their antecedents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyses import attention
from analyses.documents import how_far
from analyses.sentences import REFERENCE, SOURCE
from workbench.app.frame import Frame
from workbench.evaluation.gold_alignments import has_truth, truth_of
from workbench.evaluation.live_trace import trace_sentence
from workbench.store.runs import RunError, short_names

GOLD, PRONOUN, ATTENTION = "Gold alignment", "Pronoun", "Attention"
_CROSS_ATTENTION = "decoder.cross_attention"


@dataclass(frozen=True, eq=False)
class Shading:
    """How strongly each word of the line `on` belongs to each word of the line `over`: weights[over, on], from 0."""

    name: str
    over: str
    weights: np.ndarray
    on: str = SOURCE


def attended(frame: Frame) -> list[Shading]:
    """Attention of each run along its own output: the mean over layers and heads, by words, without </s>."""
    names, shadings = short_names(frame.tested), []
    for run in frame.tested:
        if run.outside:
            continue
        with suppress(RunError, OSError):  # the figures of the page say why
            trace = trace_sentence(run, frame.view.test, frame.view.sentence)
            weights = attention.to_words(attention.average(trace.array(_CROSS_ATTENTION)), trace.target, trace.source)
            words = attention.joined(trace.target), attention.joined(trace.source)
            shadings.append(Shading(ATTENTION, names[run.name], attention.without_end(weights, *words)[0]))
    return shadings


def gold(frame: Frame) -> list[Shading]:
    """Links of the reference to the source; none where the test set has no gold alignment."""
    record = _record(frame)
    if record is None:
        return []
    test_set, number = frame.tested[0].translations(frame.view.test).test_set, frame.view.sentence
    truth = truth_of(test_set.sources[number], (test_set.references or [])[number], record)
    weights = np.zeros((truth.target_words, truth.source_words))
    for source, target in truth.links:
        weights[target, source] = 1.0
    return [Shading(GOLD, REFERENCE, weights)]


def antecedents(frame: Frame) -> tuple[dict[str, str], list[Shading]]:
    """Earlier sentences by label, and in them the antecedent of each pronoun of the source, where the test set says so.

    Sentences without an antecedent are left out.
    """
    record = _record(frame)
    sources = frame.tested[0].translations(frame.view.test).test_set.sources
    by_distance: dict[int, list[tuple[int, int]]] = {}
    for pronoun in (record or {}).get("pronouns", ()):
        place = pronoun["antecedent"]
        by_distance.setdefault(-place["sentence"], []).append((pronoun["source"], place["word"]))
    lines, shadings = {}, []
    for distance in sorted(by_distance, reverse=True):
        lines[how_far(distance)] = before = sources[frame.view.sentence - distance]
        weights = np.zeros((len(sources[frame.view.sentence].split()), len(before.split())))
        for pronoun_word, antecedent_word in by_distance[distance]:
            weights[pronoun_word, antecedent_word] = 1.0
        shadings.append(Shading(PRONOUN, SOURCE, weights, how_far(distance)))
    return lines, shadings


def _record(frame: Frame) -> Mapping[str, Any] | None:
    """The truth of the sentence; None where its test set has none."""
    run, test = frame.tested[0], frame.view.test
    truth = run.translations(test).truth
    return truth[frame.view.sentence] if truth and has_truth(run, test) else None
