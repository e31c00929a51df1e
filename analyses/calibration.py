"""Do the tests and intervals keep their word? Simulations in which the truth is known.

`null_rates`: two real outputs whose segments are exchanged at random are equally good systems; a test at level 0.05
should call them different in at most 5 % of the cases. `seed_coverage`: systems whose true score is known, trained with
a few seeds; a 95 % interval should hold the truth in 95 % of the cases and be little wider than one that knew the
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
    """Every test of `analyses.significance` by name, with so many resamples or trials."""

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
    """Two equally good outputs of `segments` random segments: of each segment either system has either translation."""
    rows = draw.choice(len(first), size=min(segments, len(first)), replace=False)
    swap = draw.integers(2, size=(len(rows), 1), dtype=bool)
    one, other = first.values[rows], second.values[rows]
    return replace(first, values=np.where(swap, other, one)), replace(second, values=np.where(swap, one, other))


def null_rates(
    pairs: Sequence[tuple[Statistics, Statistics]],
    trials: int = 2000,
    segments: int = 300,
    samples: int = 1000,
    seed: int = 1,
    tests: Mapping[str, Test] | None = None,
) -> pd.DataFrame:
    """How often each test finds a difference where there is none: metric, test, trials, segments, rate (of p < 0.05),
    error (its standard error), largest_p.

    pairs: outputs of two systems of one test set under one metric, taken by turns.
    """
    tests = tests_offered(samples) if tests is None else tests
    found: dict[str, list[float]] = {name: [] for name in tests}
    draw = np.random.default_rng(seed)
    for trial in range(trials):
        base, system = exchanged(*pairs[trial % len(pairs)], segments, draw)
        for name, test in tests.items():
            found[name].append(test(base, system, trial).p_value)
    rows = []
    for name, p_values in found.items():
        rate = float(np.mean(np.array(p_values) < LEVEL))
        error = np.sqrt(rate * (1 - rate) / trials)
        rows.append((pairs[0][0].metric, name, trials, segments, rate, error, max(p_values)))
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
    """Coverage of the 95 % interval of `seeds.over_seeds` of a system whose true score is 50, and its median width over
    that of an interval that knew both variances.

    seed_deviation: standard deviation of a training's true score, in points. sentence_error: standard error of a score
    that comes from the sentences, the same sentences for all trainings. Both normal; the metric is a mean of sentences.
    """
    draw = np.random.default_rng(seed)
    ideal = 2 * norm.ppf(1 - LEVEL / 2) * np.hypot(seed_deviation / np.sqrt(seeds), sentence_error)
    held, widths = 0, []
    for trial in range(trials):
        of_sentences = draw.normal(0, sentence_error * np.sqrt(sentences), sentences)
        by_seed = {number: _mean_metric(50 + draw.normal(0, seed_deviation) + of_sentences) for number in range(seeds)}
        found = over_seeds(by_seed, samples, seed=trial)
        held += found.low <= 50 <= found.high
        widths.append(found.high - found.low)
    return {
        "seeds": seeds,
        "seed_deviation": seed_deviation,
        "sentence_error": sentence_error,
        "trials": trials,
        "coverage": held / trials,
        "median_width": float(np.median(widths) / ideal),
    }


def _mean_metric(per_sentence: np.ndarray) -> Statistics:
    """A metric whose score is the mean of these values: TER of references one word long, in percent."""
    return Statistics("ter", np.stack([per_sentence / 100, np.ones_like(per_sentence)], axis=-1), "simulated")
