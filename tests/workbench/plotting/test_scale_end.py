"""The end of a color scale: what was asked for, or the largest value, with a sentence that says which."""

import numpy as np
import pytest

from workbench.plotting.scale_end import rounded_up, scale_end


@pytest.mark.parametrize(
    ("value", "end"),
    [(0.931, 0.94), (0.93, 0.93), (1.0, 1.0), (1.0000001, 1.0), (0.25, 0.25), (0.0371, 0.038), (37.2, 38.0), (0, 1)],
)
def test_an_end_has_two_digits_and_is_not_below_the_value(value, end):
    assert rounded_up(value) == end


def test_auto_ends_at_the_largest_value_and_says_so():
    assert scale_end(np.array([0.2, np.nan, 0.418, 0.3]), "auto") == (
        0.42, "Colors reach from 0 to 0.42, the largest value rounded up."
    )  # fmt: skip


def test_one_row_far_above_all_others_does_not_set_the_scale():
    rows = np.array([*np.linspace(0.1, 0.3, 20), 0.97])
    end, sentence = scale_end(rows, "auto")
    assert end == 0.3
    assert sentence == (
        "Colors reach from 0 to 0.3, which 95 % of the rows do not exceed; larger values, up to 0.97, have the last "
        "color."
    )
    assert scale_end(np.array([*rows, 0.97, 0.97]), "auto")[0] == 0.97  # three are no outlier
    assert scale_end(np.array([*rows[:-1], 0.59]), "auto")[0] == 0.59  # less than twice as much is none either


@pytest.mark.parametrize("limit", [0.25, 1.0])
def test_a_limit_that_was_asked_for_stays_whatever_is_drawn(limit):
    assert [scale_end(np.full(4, top), limit)[0] for top in (0.1, 0.9)] == [limit, limit]


def test_nothing_to_draw_has_a_scale_too():
    for rows in (np.zeros(3), np.zeros(0), np.full(2, np.nan)):
        assert scale_end(rows, "auto")[0] == 1.0
