"""Tests keep their level where nothing differs; intervals over few seeds hold the truth and are not needlessly wide.

The rates on real systems' outputs (WMT22) stand in the documentation, by `workbench benchmark scale-null-rates`.
"""

from functools import cache

import numpy as np
import pytest

from analyses import calibration, scores, seeds
from tests.analyses.corpora import noisy_copy, reference_lines
from tests.kinds import sampled

pytestmark = pytest.mark.long

TRIALS = 2000


@cache
def rates(metric: str) -> dict[str, dict[str, float]]:
    references = reference_lines(600)
    pair = [scores.extract(noisy_copy(references, seed, 0.35), references, metric) for seed in (3, 4)]
    table = calibration.null_rates([(pair[0], pair[1])], TRIALS, segments=300, samples=160)
    return table.set_index("test").to_dict("index")


@pytest.mark.parametrize("metric", sampled(["bleu", "chrf"]))
@pytest.mark.parametrize("test", ["bootstrap", "randomization", "sign"])
@pytest.mark.slow
def test_equal_systems_are_called_different_in_no_more_than_six_percent(test, metric):
    found = rates(metric)[test]
    assert found["trials"] == TRIALS
    assert 0.01 < found["rate"] <= 0.06
    assert found["largest_p"] > 0.95, "a probability, not half of one"


def test_sacrebleus_rule_does_not_keep_the_level():
    """Else a rule of our own would need no reason."""
    found = rates("bleu")["bootstrap-sacrebleu"]
    assert found["rate"] > 0.09
    assert found["largest_p"] < 0.6


def test_segments_are_those_that_there_are():
    first, second = (scores.Statistics("ter", values, "") for values in np.random.default_rng(1).random((2, 50, 2)))
    found = calibration.null_rates([(first, second)], trials=2, segments=300, samples=40)
    assert set(found["segments"]) == {50}


# Standard deviations between seeds, in points, beside a standard error of 0.08 that sentences give.
@pytest.mark.parametrize("deviation", [0.0, 0.1, 0.2])
@pytest.mark.slow
def test_three_seeds_hold_the_truth_and_are_not_needlessly_wide(deviation):
    found = calibration.seed_coverage(deviation, 0.08, trials=1500, sentences=100, samples=200)
    assert found["coverage"] >= 0.94
    assert 0.9 < found["median_width"] <= 1.7


def test_one_seed_has_no_interval_over_seeds():
    """It is of its sentences alone, says so, and holds the truth of other trainings as rarely as that."""
    assert calibration.seed_coverage(0.4, 0.08, seeds=1, trials=200, sentences=100, samples=200)["coverage"] < 0.5
    output = scores.extract(noisy_copy(reference_lines(20), 3, 0.3), reference_lines(20))
    assert seeds.over_seeds({1: output}, 50).form == seeds.SENTENCES
