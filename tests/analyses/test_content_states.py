"""Content states by hand: means along a sentence, how steady the whole is, coverage of words."""

import numpy as np
import pytest

from analyses.content_states import before_each_step, course, covered_words, steadiness


def test_the_course_is_a_mean_over_relative_positions_and_ranks_become_shares():
    sentences = [
        {"past.norm": np.array([1.0, 3.0]), "past.rank": np.array([1, 4])},
        {"past.norm": np.array([2.0, 2.0, 6.0, 8.0]), "past.rank": np.array([2, 1, 1, 1])},
    ]
    table = course(sentences, bins=2, samples=20)
    norm = table[table.measure == "norm"]
    assert norm.value.tolist() == pytest.approx([(1 + 2 + 2) / 3, (3 + 6 + 8) / 3])
    assert norm.n.tolist() == [3, 3]
    first = table[table.measure == "first"]
    assert first.value.tolist() == pytest.approx([2 / 3, 2 / 3])
    assert "rank" not in set(table.measure)
    assert (table.low <= table.value).all()
    assert (table.value <= table.high).all()


def test_a_whole_that_stays_has_no_spread():
    still = {"whole.distance": np.full(3, 0.5), "whole.cosine": np.full(3, 0.9)}
    moving = {"whole.distance": np.array([0.0, 2.0]), "whole.cosine": np.array([1.0, -1.0])}
    short = {"whole.distance": np.array([7.0]), "whole.cosine": np.array([1.0])}
    table = steadiness([still, moving, short])
    assert table.distance.tolist() == pytest.approx([0.5, 1.0])
    assert table.distance_spread.tolist() == pytest.approx([0.0, 1.0])
    assert table.cosine_spread.tolist() == pytest.approx([0.0, 1.0])


def test_coverage_of_words_stands_behind_a_words_last_piece():
    coverage = [[0.1, 0.3, 0.0], [0.5, 0.7, 0.1], [0.6, 1.0, 0.9]]
    found = covered_words(np.array(coverage), ["▁Hun", "d", "</s>"], ["▁do", "g", "</s>"])
    np.testing.assert_allclose(found, [[0.6, 0.1], [0.8, 0.9]])
    np.testing.assert_allclose(before_each_step(found), [[0, 0], [0.6, 0.1]])
    np.testing.assert_allclose(before_each_step(found, 1.0)[0], [1, 1])
    with pytest.raises(ValueError, match="is not of 2 target and 3 source pieces"):
        covered_words(np.array(coverage), ["▁a", "▁b"], ["▁do", "g", "</s>"])
