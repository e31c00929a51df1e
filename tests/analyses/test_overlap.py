"""Overlap rates: a case worked by hand, sets written out by brute force, means over places and sentences."""

import numpy as np
import pytest

from analyses import overlap
from analyses.past_future import along


def ranks_of(tops: list[list[int]], words: list[int]) -> np.ndarray:
    """Ranks of the words by lists of types, the most probable first; what a list has not comes far behind."""
    return np.array([[top.index(word) + 1 if word in top else 1000 for word in words] for top in tops])


def test_the_worked_case():
    """y = 3 5 3 2. At t = 1 the five best have the 3; at t = 2 of {3, 5} the ten best have the 3 alone."""
    words = [3, 5, 3, 2]
    tops = [[3, 5, 1, 0, 4], [3, 1, 0, 4, 6, 7, 8, 9, 10, 11], [], []]
    past, _ = overlap.overlaps(ranks_of(tops, words), np.ones((4, 4)), words)
    assert past[:2].tolist() == [1.0, 0.5]
    assert past[:2].mean() == 0.75


def test_what_is_beyond_five_for_each_word_does_not_count():
    words = ["a", "b", "c"]
    ranks = np.array([[5, 1, 1], [10, 11, 1], [15, 15, 16]])
    past, future = overlap.overlaps(ranks, np.array([[1, 10, 11], [1, 1, 5], [9, 9, 9]]), words)
    assert past.tolist() == [1, 1 / 2, 2 / 3]
    assert future.tolist() == [1 / 2, 1]  # of the last word there is no future


def by_sets(past_ranks, future_ranks, words):
    """The definition, with sets of types."""
    count = len(words)
    rates = [[], []]
    for t in range(1, count + 1):
        for side, ranks, bag, top in (
            (0, past_ranks, words[:t], 5 * t),
            (1, future_ranks, words[t:], 5 * (count - t)),
        ):
            if bag:
                found = {word for word, rank in zip(words, ranks[t - 1], strict=True) if rank <= top}
                rates[side].append(len(found & set(bag)) / len(set(bag)))
    return rates


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_of_sets(seed):
    drawn = np.random.default_rng(seed)
    words = drawn.integers(6, size=drawn.integers(1, 12)).tolist()
    # A type has one rank at a step, wherever it stands.
    of_types = [np.array([drawn.permutation(60) + 1 for _ in words]) for _ in range(2)]
    ranks = [ranked[:, words] for ranked in of_types]
    found = overlap.overlaps(*ranks, words)
    for one, wanted in zip(found, by_sets(*ranks, words), strict=True):
        np.testing.assert_allclose(one, wanted)


def test_of_tokens_a_repeated_word_counts_each_time():
    ranks = np.array([[1, 9, 1], [1, 11, 1], [1, 99, 1]])
    assert overlap.overlaps(ranks, ranks, ["a", "b", "a"])[0].tolist() == [1, 1 / 2, 1 / 2]
    assert overlap.overlaps(ranks, ranks, ["a", "b", "a"], types=False)[0].tolist() == [1, 1 / 2, 2 / 3]


def test_ranks_of_other_words_are_refused():
    with pytest.raises(ValueError, match=r"Ranks of 2 words are \[2, 2\], not \(3, 3\)"):
        overlap.overlaps(np.ones((3, 3)), np.ones((3, 3)), ["a", "b"])


def test_means_over_sentences_and_places():
    past = [np.array([1.0, 0.0]), np.array([0.5, 0.5, 0.5, 1.0])]
    future = [np.array([0.0]), np.array([1.0, 1.0, 0.0])]
    means = overlap.rates(past, future, samples=50).set_index("side")
    assert means.value.tolist() == [(0.5 + 0.625) / 2, (0 + 2 / 3) / 2]
    assert (means.low <= means.value).all()
    assert (means.value <= means.high).all()
    halves = along({"past": past, "future": future}, [2, 4], bins=2, samples=50).set_index(["side", "place"])
    # t / T up to a half: the first of two steps, the first two of four.
    assert halves.value.to_dict() == {("past", 0.25): pytest.approx(2 / 3), ("past", 0.75): pytest.approx(0.5),
                                      ("future", 0.25): pytest.approx(2 / 3), ("future", 0.75): 0.0}  # fmt: skip
    assert halves.n.tolist() == [3, 3, 3, 1]


def test_a_text_of_one_word_has_no_future():
    means = overlap.rates([np.ones(1)], [np.zeros(0)], samples=10).set_index("side")
    assert means.loc["past", "value"] == 1
    assert np.isnan(means.loc["future", "value"])
    assert along({"past": [np.ones(1)], "future": [np.zeros(0)]}, [1], samples=10).side.tolist() == ["past"]
