"""Simulations of known truth that check the error rate of tests and the coverage of intervals.

`null_rates`: two real outputs whose segments are exchanged at random are equally good systems; a test at level 0.05
should find a difference in at most 5 % of the trials. `seed_coverage`: systems of known true score, trained with a few
seeds; a 95 % interval should contain the truth in 95 % of the trials and be little wider than one computed from known
variances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import norm

from analyses.scores import Statistics
from analyses.seeds import over_seeds
from analyses.significance import Comparison, approximate_randomization, paired_bootstrap, sign_test

LEVEL = 0.05
Test = Callable[[Statistics, Statistics, int], Comparison]  # baseline, system, seed of the draws


def tests_offered(samples: int) -> dict[str, Test]:
    """Every test of `analyses.significance` by name, with `samples` resamples or trials."""

    def bootstrap(base: Statistics, system: Statistics, seed: int, **rule) -> Comparison:
        return paired_bootstrap(base, system, samples, seed, **rule)

    return {
        "bootstrap": bootstrap,
        "randomization": lambda base, system, seed: approximate_randomization(base, system, samples, seed),
        "sign": lambda base, system, seed: sign_test(base, system),
        "bootstrap-sacrebleu": partial(bootstrap, rule="sacrebleu"),
    }


def exchanged(
    first: Statistics, second: Statistics, segments: int, draw: np.random.Generator
) -> tuple[Statistics, Statistics]:
    """Two equally good outputs of `segments` random segments: each segment's translations are swapped at random."""
    rows = draw.choice(len(first), size=min(segments, len(first)), replace=False)
    swap = draw.integers(2, size=(len(rows), 1), dtype=bool)
    first_values, second_values = first.values[rows], second.values[rows]
    left = replace(first, values=np.where(swap, second_values, first_values))
    right = replace(second, values=np.where(swap, first_values, second_values))
    return left, right


def null_rates(
    pairs: Sequence[tuple[Statistics, Statistics]],
    trials: int = 2000,
    segments: int = 300,
    samples: int = 1000,
    seed: int = 1,
    tests: Mapping[str, Test] | None = None,
) -> pd.DataFrame:
    """False positive rate of each test on equally good systems.

    Columns: metric, test, trials, segments (of each trial: as many as asked for, at most all), rate (of p < 0.05),
    error (its standard error), largest_p. pairs: outputs of two systems on one test set under one metric; the trials
    take them in turn.
    """
    tests = tests_offered(samples) if tests is None else tests
    p_values_by_test: dict[str, list[float]] = {name: [] for name in tests}
    draw = np.random.default_rng(seed)
    for trial in range(trials):
        base, system = exchanged(*pairs[trial % len(pairs)], segments, draw)
        for name, test in tests.items():
            p_values_by_test[name].append(test(base, system, trial).p_value)
    drawn = min(segments, *(len(first) for first, _ in pairs))
    rows = []
    for name, p_values in p_values_by_test.items():
        rate = float(np.mean(np.array(p_values) < LEVEL))
        error = np.sqrt(rate * (1 - rate) / trials)
        rows.append((pairs[0][0].metric, name, trials, drawn, rate, error, max(p_values)))
    return pd.DataFrame(rows, columns=["metric", "test", "trials", "segments", "rate", "error", "largest_p"])


def seed_coverage(
    seed_deviation: float,
    sentence_error: float,
    seeds: int = 3,
    trials: int = 1000,
    sentences: int = 300,
    samples: int = 400,
    seed: int = 1,
) -> dict[str, float]:
    """Coverage of the 95 % interval of `seeds.over_seeds` for a system of true score 50, and its relative width.

    median_width is relative to the interval computed from the known variances. seed_deviation: standard deviation of
    the true score between trainings, in points. sentence_error: standard error of a score due to the sentences, which
    all trainings share. Both are normal; the metric is a mean over sentences.
    """
    draw = np.random.default_rng(seed)
    ideal = 2 * norm.ppf(1 - LEVEL / 2) * np.hypot(seed_deviation / np.sqrt(seeds), sentence_error)
    covered, widths = 0, []
    for trial in range(trials):
        of_sentences = draw.normal(0, sentence_error * np.sqrt(sentences), sentences)
        by_seed = {number: _mean_metric(50 + draw.normal(0, seed_deviation) + of_sentences) for number in range(seeds)}
        result = over_seeds(by_seed, samples, seed=trial)
        covered += result.low <= 50 <= result.high
        widths.append(result.high - result.low)
    return {
        "seeds": seeds,
        "seed_deviation": seed_deviation,
        "sentence_error": sentence_error,
        "trials": trials,
        "coverage": covered / trials,
        "median_width": float(np.median(widths) / ideal),
    }


def _mean_metric(per_sentence: np.ndarray) -> Statistics:
    """A metric whose score is the mean of these values: TER of references one word long, in percent."""
    return Statistics("ter", np.stack([per_sentence / 100, np.ones_like(per_sentence)], axis=-1), "simulated")
