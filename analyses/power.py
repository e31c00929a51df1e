"""The smallest detectable difference of an experiment, from the spread of its seeds and sentences.

Simulated experiments have the same number of seeds, whose differences vary by `seed_deviation`, and test sentences that
move the mean over seeds by `sentence_error`. Their intervals are those of `analyses.seeds`. A difference d is seen in a
simulated experiment if its interval lies above zero, which it does if d is larger than how far the interval reaches
below what the experiment measured of d = 0. So the smallest difference that is seen with a given power is a quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import ndtri, stdtrit

POWER, LEVEL, TRIALS = 0.8, 0.95, 20_000


def sentence_error(half_width: float, count: int, seed_error: float) -> float:
    """The standard error that test sentences bring to a mean difference, from its 95 % interval.

    count: of seeds; seed_error: the standard error of their mean. What the seeds do not account for in the interval's
    half width is the sentences'; 0 if nothing is left.
    """
    of_seeds = _student_critical_value(LEVEL, count) * seed_error if count > 1 else 0.0
    return math.sqrt(max(0.0, half_width**2 - of_seeds**2)) / _normal_critical_value(LEVEL)


def interval(by_seed: Sequence[float], sentence_error: float, level: float = LEVEL) -> tuple[float, float]:
    """The interval of `analyses.seeds` around the mean of the seeds' differences, given the error of the sentences."""
    count, reach = len(by_seed), _normal_critical_value(level) * sentence_error
    if count > 1:
        of_seeds = _student_critical_value(level, count) * float(np.std(by_seed, ddof=1)) / math.sqrt(count)
        reach = math.hypot(reach, of_seeds)
    center = sum(by_seed) / count
    return center - reach, center + reach


def at_level(
    center: float, low: float, high: float, count: int, seed_error: float, level: float
) -> tuple[float, float]:
    """A 95 % interval of `analyses.seeds` at another level.

    count: of seeds; seed_error: the standard error of their mean, NaN where it is not known: then all of it is
    taken for theirs, which widens it most.
    """
    of_sentences = _normal_critical_value(level) / _normal_critical_value(LEVEL)
    of_seeds, reach_of_seeds = 1.0, 0.0
    if count > 1:
        before, after = (_student_critical_value(one, count) for one in (LEVEL, level))
        of_seeds, reach_of_seeds = after / before, math.inf if math.isnan(seed_error) else before * seed_error

    def reach(side: float) -> float:
        seeds = min(side, reach_of_seeds)
        return math.hypot(of_seeds * seeds, of_sentences * math.sqrt(side**2 - seeds**2))

    return center - reach(max(0.0, center - low)), center + reach(max(0.0, high - center))


def least_at_level(
    groups: Sequence[tuple[float, float, float, float]], left_out: int, count: int, level: float
) -> tuple[float, float]:
    """The interval of the least difference of several groups but `left_out`, as in `buckets.differences_over_seeds`.

    groups: difference, its 95 % interval, the standard error between its seeds; count: of seeds. Groups change places
    with the level, so the interval of the least one cannot be widened by itself.
    """

    def ends(parts: int, side: int) -> list[float]:
        at = 1 - (1 - level) / parts
        return sorted(at_level(center, low, high, count, error, at)[side] for center, low, high, error in groups)

    return ends(left_out + 1, 0)[left_out], ends(len(groups), 1)[left_out]


def detectable_difference(low: float, high: float, count: int, seed_error: float, level: float = LEVEL) -> float:
    """The smallest difference that an experiment with this 95 % interval of `analyses.seeds` detects at a level.

    count: of seeds; seed_error: as for `at_level`. Of one seed it is what that training could have shown.
    """
    half_width, of_seeds = (high - low) / 2, 0.0
    if count > 1:
        unknown = math.isnan(seed_error)
        of_seeds = half_width / _student_critical_value(LEVEL, count) if unknown else seed_error
    of_sentences = sentence_error(half_width, count, of_seeds)
    return smallest_difference(of_seeds * math.sqrt(count), of_sentences, count, level=level)


def smallest_difference(
    seed_deviation: float,
    sentence_error: float,
    seeds: int,
    level: float = LEVEL,
) -> float:
    """The smallest true difference whose interval lies above zero with a probability of `POWER`, in the units given.

    seed_deviation: standard deviation between seeds of the difference; with one seed it must be 0, and what is found
    is of that training alone. Raises ValueError otherwise.
    """
    if seeds < 1 or (seeds == 1 and seed_deviation):
        raise ValueError(f"{seeds} seeds, deviation {seed_deviation}: one seed has none, and there is one at least")
    mean, error, of_sentences = _simulated(seeds)
    reach = np.full(TRIALS, _normal_critical_value(level) * sentence_error)
    if seeds > 1:
        reach = np.hypot(reach, _student_critical_value(level, seeds) * seed_deviation * error)
    return float(np.quantile(reach - seed_deviation * mean - sentence_error * of_sentences, POWER))


@cache
def _simulated(seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of `TRIALS` experiments in which nothing differs and all varies by 1, each [TRIALS].

    The mean over seeds, its estimated standard error (NaN of one seed), and what the test sentences add.
    """
    random = np.random.default_rng(1)
    differences = random.standard_normal((TRIALS, seeds))
    of_sentences = random.standard_normal(TRIALS)
    error = differences.std(axis=1, ddof=1) / math.sqrt(seeds) if seeds > 1 else np.full(TRIALS, np.nan)
    return differences.mean(axis=1), error, of_sentences


def _normal_critical_value(level: float) -> float:
    """How many standard errors a two-sided interval reaches, of a normal distribution."""
    return float(ndtri((1 + level) / 2))


def _student_critical_value(level: float, count: int) -> float:
    """The same of Student's t, where the deviation is estimated from `count` values."""
    return float(stdtrit(count - 1, (1 + level) / 2))
