"""Sentences worth looking at: where outputs differ most, the worst, the longest, those with a pronoun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.evaluation import scoring
from workbench.evaluation.document_context import context_mechanisms
from workbench.evaluation.gold_alignments import has_truth
from workbench.evaluation.result_cache import ResultCache
from workbench.store.provenance import digests
from workbench.store.runs import Run, RunError

MOST_SCORED = 10_000
FEWEST_WORDS = 6  # of the source of a sentence that pages show first: one of fewer words shows little
DEFAULTS: ResultCache[int] = ResultCache(
    "scores/default-sentence-{}.json",
    lambda sentence: {"sentence": sentence},
    lambda content: int(content["sentence"]),
    version=2,
)
PRONOUN_RANKING = "With a pronoun"
PRONOUN = "it"  # the tag of a sentence whose "it" stands for a noun of an earlier one


def segment_chrf(runs: Sequence[Run], test: str) -> np.ndarray:
    """Segment-level chrF [runs, sentences]. Raises RunError without references."""
    from analyses.sentences import segment_scores  # takes pandas

    opened = {run.name: run.translations(test) for run in runs}
    statistics = scoring.statistics_of_all(runs, opened, "chrf")
    return np.stack([segment_scores(statistics[run.name]) for run in runs])


def most_different(runs: Sequence[Run], test: str, allowed: Callable[[int, int], bool] = lambda *_: True) -> int:
    """The sentence with the largest difference of the best and the worst run in segment chrF.

    allowed: takes (number, source words); only sentences for which it is True count, else the result is 0.
    """
    sources = runs[0].translations(test).test_set.sources
    rows = [row for row, source in enumerate(sources) if allowed(row, len(source.split()))]
    try:
        differences = np.ptp(segment_chrf(runs, test), axis=0)
    except RunError:  # without references
        return rows[0] if rows else 0
    return max(rows, key=lambda row: differences[row], default=0)


def default_sentence(runs: Sequence[Run], test: str) -> int:
    """The sentence that pages show first: where the runs differ most, of those with enough words and beam trees.

    Beam trees do not count if some run has none. Of runs that all read earlier sentences, one with a pronoun for a noun
    of these, where the test set says so. It is 0 for one run, without references, and for more than `MOST_SCORED`
    translations, which take seconds to score. Cached beside the first run.
    """
    if len(runs) < 2 or sum(len(run.translations(test)) for run in runs) > MOST_SCORED:
        return 0
    recorded = min(run.translations(test).trees for run in runs) or len(runs[0].translations(test))
    inputs = {"test": test, "runs": [[run.name, digests(run, test)] for run in runs], "recorded": recorded}
    in_documents = has_truth(runs[0], test) and all(map(context_mechanisms, runs))
    if in_documents:
        inputs["pronoun"] = PRONOUN

    def compute() -> int:
        sources = runs[0].translations(test).test_set.sources[:recorded]
        worth_it = {row for row, source in enumerate(sources) if len(source.split()) >= FEWEST_WORDS}
        if in_documents:
            worth_it = worth_it.intersection(_with_pronoun(runs, test)) or worth_it
        return most_different(runs, test, lambda row, _: not worth_it or row in worth_it)

    return DEFAULTS.cached(runs[0], inputs, compute)


def _by_difference(runs: Sequence[Run], test: str) -> list[int]:
    differences = np.ptp(segment_chrf(runs, test), axis=0)
    return [int(row) for row in np.argsort(-differences, kind="stable") if differences[row] > 0]


def _by_quality(runs: Sequence[Run], test: str) -> list[int]:
    return np.argsort(segment_chrf(runs, test).mean(axis=0), kind="stable").tolist()


def _by_length(runs: Sequence[Run], test: str) -> list[int]:
    lengths = [len(source.split()) for source in runs[0].translations(test).test_set.sources]
    return np.argsort(-np.array(lengths), kind="stable").tolist()


def _with_pronoun(runs: Sequence[Run], test: str) -> list[int]:
    truth = runs[0].translations(test).truth
    if truth is None:
        raise RunError(f"{test} says of no word what it stands for; only the controlled corpus does")
    return [row for row, record in enumerate(truth) if PRONOUN in record.get("phenomena", ())]


@dataclass(frozen=True)
class Ranking:
    """An order of sentences, or of some of them, and its description."""

    description: str
    order: Callable[[Sequence[Run], str], list[int]]


RANKINGS = {
    "Most different": Ranking("The sentence where segment chrF of the chosen runs differs most", _by_difference),
    "Worst": Ranking("The sentence with the lowest mean of segment chrF", _by_quality),
    "Longest": Ranking("The sentence with the most source words", _by_length),
    PRONOUN_RANKING: Ranking(
        "A sentence with an “it” that stands for a noun of an earlier one (controlled corpus)", _with_pronoun
    ),
}


def next_in_ranking(name: str, runs: Sequence[Run], test: str, sentence: int) -> int:
    """The sentence after this one in a ranking; the first of the ranking if this one is not in it, or is the last.

    Raises RunError if the ranking needs references or a truth that the test set lacks, or holds no sentence.
    """
    ranked = RANKINGS[name].order(runs, test)
    if not ranked:
        raise RunError(f"{name}: no sentence of {test} is such a one")
    position = ranked.index(sentence) + 1 if sentence in ranked else 0
    return ranked[position % len(ranked)]
