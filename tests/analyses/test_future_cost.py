"""Overlay, calibration and agreement of estimated and realised costs, against cases worked by hand."""

import numpy as np
import pytest

from analyses import future_cost


def test_overlay_puts_estimate_and_realised_value_of_one_word_on_one_row():
    table = future_cost.overlay(["a", "b"], [-1.0, -0.5], [np.nan, -0.75], gate=[0.1, 0.9])
    assert list(table.columns) == ["step", "token", "log_prob", "estimated", "gate", "error"]
    assert table.step.tolist() == [1, 2]
    assert table.gate.tolist() == [0.1, 0.9]
    assert np.isnan(table.error[0])
    assert table.error[1] == -0.25
    assert future_cost.overlay(["a"], [-1.0], [-1.0]).gate.isna().all()
    with pytest.raises(ValueError, match="2 tokens but 1 values of estimated"):
        future_cost.overlay(["a", "b"], [-1, -1], [-1])


def test_calibration_worked_by_hand():
    """Costs 1, 2 | 3, 4 against 2, 4 | 3, 5: means 1.5, 3.5 and 3, 4; a resample has one of two sentences, or both."""
    table = future_cost.calibration([[-1.0, -3.0, np.nan], [-2.0, -4.0]], [[-2.0, -3.0, -9.0], [-4.0, -5.0]], bins=2)
    assert table.bin.tolist() == [1, 2]
    assert table.n.tolist() == [2, 2]
    assert table.mean_estimated.tolist() == [1.5, 3.5]
    assert table.mean_realised.tolist() == [3.0, 4.0]
    assert table.low.tolist() == [2.0, 3.0]
    assert table.high.tolist() == [4.0, 5.0]
    assert table.low_edge.tolist() == [1.0, 3.0]
    assert table.high_edge.tolist() == [2.0, 4.0]


def test_calibrated_estimates_lie_on_the_diagonal():
    """Realised costs scatter around what was foretold: the mean costs agree bin by bin."""
    generator = np.random.default_rng(0)
    estimated = -generator.gamma(2.0, 1.0, 40_000)
    realised = estimated + generator.normal(0, 0.3, len(estimated))
    table = future_cost.calibration(estimated.reshape(1000, 40), realised.reshape(1000, 40))
    assert table.n.sum() == 40_000
    assert table.n.between(3_999, 4_001).all()
    assert ((table.mean_realised - table.mean_estimated).abs() < 0.02).all()
    assert (table.low < table.mean_realised).all()
    assert (table.mean_realised < table.high).all()


def test_the_interval_of_a_bin_is_as_wide_as_sentences_differ():
    """100 sentences of 20 words, all words of a sentence alike: as wide as of 100 words, not of 2,000."""
    drawn = np.random.default_rng(1)
    realised = np.repeat(drawn.normal(-3, 1, (100, 1)), 20, axis=1)
    table = future_cost.calibration(np.full((100, 20), -3.0), realised, bins=1)
    reach = 1.96 * realised[:, 0].std(ddof=1) / np.sqrt(100)
    assert float(table.high[0] - table.low[0]) == pytest.approx(2 * reach, rel=0.1)


def test_equal_estimates_share_one_bin():
    table = future_cost.calibration([[-1.0] * 6], [[-1.0, -2.0] * 3])
    assert table.n.tolist() == [6]
    assert table.mean_realised.tolist() == [1.5]


def test_summary_worked_by_hand():
    """Errors 1, -1, 3."""
    estimated, realised = [-1.0, -2.0, -4.0], [-2.0, -1.0, -7.0]
    result = future_cost.summary(estimated, realised)
    assert (result.n, result.bias, result.mean_absolute_error) == (3, 1.0, 5 / 3)
    assert result.pearson == pytest.approx(np.corrcoef(estimated, realised)[0, 1])
    assert result.spearman == pytest.approx(0.5)  # ranks 3, 2, 1 against 2, 3, 1: 1 - 6 * 2 / (3 * 8)
    assert np.isnan(future_cost.summary([-1.0, -1.0], realised[:2]).pearson)
    with pytest.raises(ValueError, match="no step with both"):
        future_cost.summary([np.nan], [-1.0])
