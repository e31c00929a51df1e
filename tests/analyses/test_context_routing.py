"""Routing of context words: numbers worked out by hand."""

import numpy as np
import pytest

from analyses import context_routing

# Three words (one sentence before, twice two before), two capsules, two iterations.
COUPLINGS = np.array([[[0.5, 0.5]] * 3, [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])
CORRELATIONS = np.array([[[0.3, 0.3], [-0.6, -0.6], [0.0, 0.0]], [[0.1, 0.5], [-0.2, -0.4], [0.0, 0.4]]])
DISTANCES = np.array([2, 2, 1])


def test_spread_and_collapse_by_hand():
    np.testing.assert_allclose(context_routing.fullest_share(COUPLINGS), [0.5, 2.5 / 3])
    high, low = 2.5 / 3, 0.5 / 3
    used = np.exp(-(high * np.log(high) + low * np.log(low)))
    np.testing.assert_allclose(context_routing.used_capsules(COUPLINGS), [2, used])
    collapsed = np.array([[[0.0, 1.0]] * 4])
    assert context_routing.used_capsules(collapsed) == pytest.approx([1])
    assert context_routing.fullest_share(collapsed) == pytest.approx([1])


def test_weights_below_zero_and_means_by_distance():
    # First pass: 0.5 - 0.6 < 0 twice of six; second: 0 - 0.4 once.
    np.testing.assert_allclose(context_routing.negative_share(COUPLINGS, CORRELATIONS), [2 / 6, 1 / 6])
    found = context_routing.by_distance(CORRELATIONS, DISTANCES, 3)
    np.testing.assert_allclose(found, [[0.0, -0.15, np.nan], [0.2, 0.0, np.nan]], atol=1e-12)


def test_what_tells_distances_apart_by_hand():
    """A word's couplings sum to one, so that their mean is 1 / m wherever it stands: it tells nothing apart."""
    found = context_routing.of_distances(COUPLINGS, CORRELATIONS, DISTANCES, 3)
    np.testing.assert_allclose(found[..., 0], [[0.5, 0.5, np.nan], [0.5, 1.0, np.nan]])
    np.testing.assert_allclose(found[..., 1], [[0.0, -0.15, np.nan], [0.2, 0.0, np.nan]], atol=1e-12)
    # First pass, two before: 0.8 and 0.1 in size, twice each; second: 1.1, 0.5, 0.8, 0.4; one before: 0.5, 0.9.
    np.testing.assert_allclose(found[..., 2], [[0.5, 0.45, np.nan], [0.7, 0.7, np.nan]])
    np.testing.assert_allclose(context_routing.by_distance(COUPLINGS, DISTANCES, 2), 0.5)


def test_measures_are_means_over_sentences():
    one = context_routing.spread(COUPLINGS, CORRELATIONS, DISTANCES, 2)
    other = context_routing.spread(COUPLINGS[:, :2], CORRELATIONS[:, :2], DISTANCES[:2], 2)
    table = context_routing.measures(context_routing.together([one, other]), samples=50)
    known = table.set_index(["measure", "iteration", "distance"])
    assert known.loc[("fullest_share", 1, 0), "value"] == pytest.approx((2.5 / 3 + 1) / 2)
    # exp of the mean entropy: two words sure of one capsule, one even; then both sure.
    assert known.loc[("effective", 1, 0), "value"] == pytest.approx((np.exp(np.log(2) / 3) + 1) / 2)
    assert known.loc[("effective", 0, 0), "value"] == pytest.approx(2)
    assert known.loc[("correlation", 1, 1), "n"] == 1
    assert known.loc[("correlation", 1, 1), "value"] == pytest.approx(0.2)
    assert known.loc[("weight", 0, 2), "value"] == pytest.approx(0.45)
    assert known.loc[("coupling", 1, 2), "value"] == pytest.approx(1)
    inside = (table["low"] <= table["value"] + 1e-12) & (table["value"] <= table["high"] + 1e-12)
    assert inside.all()


def test_a_sentence_without_context_is_refused():
    with pytest.raises(ValueError, match="there is at least one word"):
        context_routing.spread(np.zeros((2, 0, 4)), np.zeros((2, 0, 4)), np.zeros(0), 3)
    with pytest.raises(ValueError, match="no sentence has a context"):
        context_routing.together([])


def test_how_far_couplings_moved():
    # The first word moved half of itself, the second all, the third nothing.
    first, second = np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]])
    assert context_routing.moved(first, second) == pytest.approx(0.5)
    assert np.isnan(context_routing.moved(first[:0], second[:0]))
