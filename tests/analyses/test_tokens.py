"""Tables of words and layers: what stands in a row, and arrays that do not fit the words."""

import numpy as np
import pytest

from analyses import tokens

MEASURES = {
    "log_prob": np.log([0.5, 0.25]),
    "entropy": np.array([1.0, 2.0]),
    "rank": np.array([1, 3]),
    "best_log_prob": np.log([0.5, 0.6]),
}
LENS = {name: np.stack([values, values, values]) for name, values in MEASURES.items()}


def test_a_row_is_a_word():
    found = tokens.table(["a", "b"], ["a", "c"], MEASURES)
    assert found["step"].tolist() == [1, 2]
    assert found["best"].tolist() == ["a", "c"]
    assert found["rank"].tolist() == [1, 3]
    np.testing.assert_allclose(found["probability"], [0.5, 0.25])
    np.testing.assert_allclose(found["best_probability"], [0.5, 0.6])
    with pytest.raises(ValueError, match="There are 3 tokens, but log_prob"):
        tokens.table(["a", "b", "c"], ["a", "b", "c"], MEASURES)


def test_a_further_row_of_the_lens_is_the_output():
    best = [["x", "y"], ["a", "y"], ["a", "b"]]
    plain, changed = tokens.lens_table(["a", "b"], best, LENS, 2), tokens.lens_table(["a", "b"], best, LENS, 1)
    assert list(dict.fromkeys(plain["name"])) == ["embedding", "layer 1", "layer 2"]
    assert list(dict.fromkeys(changed["name"])) == ["embedding", "layer 1", "output"]
    assert plain[plain["layer"] == 1]["best"].tolist() == ["a", "y"]
    with pytest.raises(ValueError, match="A decoder of 4 layers has 5 or 6 rows in its lens: 3"):
        tokens.lens_table(["a", "b"], best, LENS, 4)
