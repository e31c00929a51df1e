"""Differences of dev losses by update: paired by seed, with Student's t."""

import pandas as pd
import pytest
from scipy import stats

from analyses.dev_losses import differences_by_update

LOSSES = pd.DataFrame(
    [
        *(("plain", seed, 100, loss) for seed, loss in ((1, 2.0), (2, 1.0), (3, 1.5))),
        *(("new", seed, 100, loss) for seed, loss in ((3, 1.4), (1, 1.6), (2, 0.9))),
        *(("plain", seed, 200, loss) for seed, loss in ((1, 1.0), (2, 0.5))),
        ("new", 1, 200, 1.25),
        ("new", 3, 200, 0.1),  # without a baseline of its seed
        ("new", 1, 300, 0.1),
    ],
    columns=["system", "seed", "step", "dev_loss"],
)


def test_differences_are_paired_by_seed_whatever_their_order():
    found = differences_by_update(LOSSES, "plain").set_index("step")
    assert found.index.tolist() == [100, 200], "only where the baseline has a loss too"
    assert found.seeds.tolist() == [3, 1]
    assert found.delta.tolist() == pytest.approx([(-0.4 - 0.1 - 0.1) / 3, 0.25])


def test_the_interval_is_that_of_a_paired_t_test():
    found = differences_by_update(LOSSES, "plain").iloc[0]
    expected = stats.ttest_rel([1.6, 0.9, 1.4], [2.0, 1.0, 1.5]).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_one_seed_has_no_interval():
    assert differences_by_update(LOSSES, "plain").iloc[1][["low", "high"]].isna().all()


def test_a_baseline_that_is_missing_is_named():
    with pytest.raises(ValueError, match="no dev losses of the baseline 'other'"):
        differences_by_update(LOSSES, "other")
