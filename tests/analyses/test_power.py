"""Smallest differences: closed forms where there are some, and the intervals of `analyses.seeds` themselves."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import nct, norm
from scipy.stats import t as student

from analyses.power import TRIALS, at_level, detectable_difference, interval, sentence_error, smallest_difference

pytestmark = pytest.mark.long


def test_one_training_has_the_power_of_a_normal_test():
    """Sentences alone: d must exceed (z of 97.5 % + z of 80 %) standard errors."""
    wanted = (norm.ppf(0.975) + norm.ppf(0.8)) * 0.7
    assert smallest_difference(0.0, 0.7, 1) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_seeds_alone_have_the_power_of_a_t_test(seeds):
    """Without an error of sentences the interval is Student's, whose power is the noncentral t distribution's."""
    cut = student.ppf(0.975, seeds - 1)
    centrality = brentq(lambda shift: nct.sf(cut, seeds - 1, shift) - 0.8, 0.0, 100.0)
    wanted = centrality * 0.4 / math.sqrt(seeds)
    assert smallest_difference(0.4, 0.0, seeds) == pytest.approx(wanted, rel=0.03)


def test_a_difference_of_that_size_is_seen_in_four_of_five_experiments():
    deviation, error, seeds = 0.5, 0.3, 3
    difference = smallest_difference(deviation, error, seeds)
    random = np.random.default_rng(7)
    seen = 0
    for _ in range(trials := 4000):
        by_seed = difference + random.normal(0, deviation, seeds) + random.normal(0, error)
        half = math.hypot(
            student.ppf(0.975, seeds - 1) * by_seed.std(ddof=1) / math.sqrt(seeds), norm.ppf(0.975) * error
        )
        seen += by_seed.mean() - half > 0
    assert seen / trials == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / trials) + 0.16 / math.sqrt(TRIALS))


def test_the_error_of_the_sentences_is_what_the_seeds_leave_of_the_interval():
    error, seed_error = 0.35, np.std([0.2, 1.0, 0.6], ddof=1) / math.sqrt(3)
    of_seeds = student.ppf(0.975, 2) * seed_error
    assert sentence_error(math.hypot(of_seeds, norm.ppf(0.975) * error), 3, seed_error) == pytest.approx(error)
    assert sentence_error(of_seeds / 2, 3, seed_error) == 0.0
    assert sentence_error(0.7, 1, 0.0) == pytest.approx(0.7 / norm.ppf(0.975))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("by_seed", [[0.6], [0.2, 1.0, 0.6]])
def test_an_interval_at_another_level_is_the_one_that_would_have_been_computed(level, by_seed):
    center, error = 0.6, float(np.std(by_seed, ddof=1)) / math.sqrt(3) if len(by_seed) > 1 else 0.0
    found = at_level(center, *interval(by_seed, 0.35), len(by_seed), error, level)
    assert found == pytest.approx(interval(by_seed, 0.35, level))


def test_an_interval_of_unknown_seeds_is_theirs_alone_and_keeps_its_two_sides():
    low, high = at_level(1.0, 0.5, 3.0, 3, math.nan, 0.99)
    wider = student.ppf(0.995, 2) / student.ppf(0.975, 2)
    assert (low, high) == pytest.approx((1 - 0.5 * wider, 1 + 2 * wider))
    assert at_level(1.0, 0.5, 3.0, 3, math.nan, 0.95) == pytest.approx((0.5, 3.0))


def test_more_seeds_more_sentences_and_less_spread_show_smaller_differences():
    base = smallest_difference(0.5, 0.3, 3)
    assert smallest_difference(0.5, 0.3, 5) < base
    assert smallest_difference(0.5, 0.1, 3) < base
    assert smallest_difference(0.2, 0.3, 3) < base


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize("by_seed", [[0.6], [0.2, 1.0, 0.6]])
def test_what_an_interval_could_have_shown_is_of_the_errors_that_made_it(level, by_seed):
    count, deviation = len(by_seed), float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else 0.0
    found = detectable_difference(*interval(by_seed, 0.35), count, deviation / math.sqrt(count), level)
    assert found == pytest.approx(smallest_difference(deviation, 0.35, count, level=level))


def test_an_interval_of_unknown_seeds_could_have_shown_what_seeds_alone_could():
    deviation = 1.25 * math.sqrt(3) / student.ppf(0.975, 2)
    found = detectable_difference(0.5, 3.0, 3, math.nan)
    assert found == pytest.approx(smallest_difference(deviation, 0.0, 3))


@pytest.mark.parametrize(("deviation", "seeds"), [(0.1, 1), (0.0, 0)])
def test_one_seed_has_no_deviation(deviation, seeds):
    with pytest.raises(ValueError, match="one seed has none"):
        smallest_difference(deviation, 0.1, seeds)
