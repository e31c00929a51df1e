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
    """Costs 1, 2 | 3, 4 against 2, 4 | 3, 5: means 1.5, 3.5 and 3, 4; standard errors 1 and 1."""
    table = future_cost.calibration([-1.0, -2.0, -3.0, -4.0, np.nan], [-2.0, -4.0, -3.0, -5.0, -9.0], bins=2)
    assert table.bin.tolist() == [1, 2]
    assert table.n.tolist() == [2, 2]
    assert table.mean_estimated.tolist() == [1.5, 3.5]
    assert table.mean_realised.tolist() == [3.0, 4.0]
    np.testing.assert_allclose(table.low, [3 - 1.959964, 4 - 1.959964], atol=1e-6)
    np.testing.assert_allclose(table.high, [3 + 1.959964, 4 + 1.959964], atol=1e-6)
    assert table.low_edge.tolist() == [1.0, 3.0]
    assert table.high_edge.tolist() == [2.0, 4.0]


def test_calibrated_estimates_lie_on_the_diagonal():
    """Realised costs scatter around what was foretold: the mean costs agree bin by bin."""
    generator = np.random.default_rng(0)
    estimated = -generator.gamma(2.0, 1.0, 40_000)
    table = future_cost.calibration(estimated, estimated + generator.normal(0, 0.3, len(estimated)))
    assert table.n.sum() == 40_000
    assert table.n.between(3_999, 4_001).all()
    assert ((table.mean_realised - table.mean_estimated).abs() < 0.02).all()
    assert (table.low < table.mean_realised).all()
    assert (table.mean_realised < table.high).all()


def test_equal_estimates_share_one_bin():
    table = future_cost.calibration([-1.0] * 6, [-1.0, -2.0] * 3)
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
