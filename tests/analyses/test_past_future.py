"""PAST and FUTURE mass: groups of capsules, words of pieces, flips and what is left over, by hand."""

import numpy as np
import pandas as pd
import pytest

from analyses import past_future
from analyses.attention import joined

# Two source words over four steps. The first is past from the third step on, after a false start; the second never.
MASS = np.array(
    [[[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]],
     [[0.3, 0.4, 0.3], [0.2, 0.2, 0.6]],
     [[0.5, 0.4, 0.1], [0.5, 0.4, 0.1]],
     [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2]]]
)  # fmt: skip


def test_a_group_is_the_sum_of_its_capsules():
    assignments = np.array([0.1, 0.2, 0.3, 0.05, 0.25, 0.1])
    np.testing.assert_allclose(past_future.group_mass(assignments, 3), [0.3, 0.35, 0.35])
    np.testing.assert_allclose(past_future.group_mass(assignments, 2), [0.6, 0.4])
    with pytest.raises(ValueError, match="6 capsules cannot be dealt to 4 groups"):
        past_future.group_mass(assignments, 4)


def test_a_word_has_the_mean_of_its_pieces():
    sources, targets = ["▁a", "▁b", "c", "</s>"], ["▁x", "y", "</s>"]
    mass = np.random.default_rng(1).dirichlet(np.ones(3), size=(3, 4))
    found = past_future.of_words(mass, targets, sources)
    assert found.shape == (len(joined(targets)), len(joined(sources)), 3) == (2, 3, 3)
    np.testing.assert_allclose(found[0, 1], mass[:2, 1:3].mean((0, 1)))
    np.testing.assert_allclose(found[1, 0], mass[2, 0])
    np.testing.assert_allclose(found.sum(-1), 1)


def test_of_a_distribution_over_the_source_a_word_has_the_sum():
    sources, targets = ["▁a", "▁b", "c", "</s>"], ["▁x", "y", "</s>"]
    mass = np.random.default_rng(1).dirichlet(np.ones(4), size=(3, 2)).transpose(0, 2, 1)
    found = past_future.of_words(mass, targets, sources, "source")
    np.testing.assert_allclose(found[0, 1], mass[:2, 1:3].sum(1).mean(0))
    np.testing.assert_allclose(found.sum(1), 1)


def test_a_mass_of_other_pieces_is_refused():
    with pytest.raises(ValueError, match=r"A mass \(4, 2, 3\) is not of 3 target and 2 source pieces"):
        past_future.of_words(MASS, ["▁x", "▁y", "</s>"], ["▁a", "</s>"])


def test_shares_leave_out_the_redundant():
    np.testing.assert_allclose(past_future.past_share(MASS)[0], [2 / 3, 1 / 9])
    assert past_future.past_share(np.array([[[0.0, 0.0, 1.0]]])).tolist() == [[0.5]]


def test_a_word_flips_where_it_stays_past():
    flips = past_future.flips(MASS)
    assert flips[0] == 3
    assert np.isnan(flips[1])
    always = np.array([[[0.9, 0.1]], [[0.6, 0.4]]])
    assert past_future.flips(always).tolist() == [1]
    assert np.isnan(past_future.flips(always[..., ::-1])).all()
    assert np.isnan(past_future.flips(np.full((2, 1, 2), 0.5))).all()  # neither is above the other


def test_what_is_left_is_future_at_the_last_step():
    assert past_future.remaining_mass(MASS).tolist() == [0.1, 0.5]


def test_the_course_of_a_test_set_is_the_mean_of_words_and_steps():
    found = past_future.course([MASS, MASS[:1]], bins=2, samples=20).set_index(["side", "place"])
    assert found.value["past", 0.25] == pytest.approx((0.6 + 0.1 + 0.3 + 0.2) / 4)
    assert found.value["redundant", 0.75] == pytest.approx((0.1 + 0.1 + 0.1 + 0.2 + 0.1 + 0.1) / 6)
    np.testing.assert_allclose(found.value.unstack().sum(), 1)
    assert found.n["future", 0.75] == 3


def test_a_bin_that_one_sentence_alone_has_is_resampled_where_it_is_drawn():
    """Resamples without that sentence say nothing of the bin, and all others the same: the interval is one number."""
    lengths, values = [4, 4, 4], [[0.1, 0.2, 0.3, 0.7], [0.1], [0.5, 0.6]]
    with np.errstate(all="raise"):  # nothing is divided by no steps
        found = past_future.along({"past": values}, lengths, bins=4, samples=200)
    last = found[found.place == 0.875].iloc[0]
    assert [last.value, last.low, last.high] == pytest.approx([0.7] * 3)
    assert last.n == 1
    first = found[found.place == 0.125].iloc[0]
    assert (first.value, first.n) == (pytest.approx(0.7 / 3), 3)
    assert 0.1 <= first.low < first.value < first.high <= 0.5


def test_a_step_counts_in_the_bin_of_its_end():
    """Of five steps in two bins the third ends at 3/5, in the second half; of sentences of other lengths each step
    counts alike, so the longer one has more to say."""
    found = past_future.along({"past": [np.arange(1.0, 6.0), np.array([10.0, 20.0])]}, [5, 2], bins=2, samples=10)
    assert found.place.tolist() == [0.25, 0.75]
    assert found.n.tolist() == [3, 4]
    assert found.value.tolist() == pytest.approx([(1 + 2 + 10) / 3, (3 + 4 + 5 + 20) / 4])


def test_intervals_of_the_course_are_those_of_a_bootstrap_over_sentences():
    draw = np.random.default_rng(2)
    lengths = draw.integers(2, 9, 40)
    values = [draw.normal(draw.normal(), 0.1, length) for length in lengths]
    found = past_future.along({"past": values}, lengths.tolist(), bins=1, samples=2000).iloc[0]
    sums = np.array([value.sum() for value in values])
    drawn = np.random.default_rng(7).integers(40, size=(2000, 40))
    wanted = np.quantile(sums[drawn].sum(1) / lengths[drawn].sum(1), [0.025, 0.975])
    np.testing.assert_allclose([found.low, found.high], wanted, atol=0.15 * (found.high - found.low))


def test_a_word_is_written_with_its_last_counterpart():
    steps = past_future.written_at({(0, 1), (0, 4), (2, 0)}, 3)
    assert steps[[0, 2]].tolist() == [5, 1]
    assert np.isnan(steps[1])


def test_flips_beside_counterparts():
    table = past_future.flip_table([MASS, MASS[:, :1]], [{(0, 1), (1, 3)}, set()])
    assert table[["sentence", "word", "written"]].to_numpy().tolist() == [[0, 0, 2], [0, 1, 4]]
    assert table.distance[0] == 1  # flips at step 3, written at step 2
    assert np.isnan(table.distance[1])
    assert table.largest.tolist() == [False, False]  # the first is PAST before; the second is FUTURE after


def test_the_first_word_has_nothing_before_it_so_its_source_word_cannot_change():
    none = past_future.flip_table([MASS], [{(0, 0), (1, 0)}])
    assert none.empty
    assert past_future.flips_in_time(none).empty


def test_a_word_may_pass_to_past_while_most_of_it_is_redundant():
    """Of two words the first goes from FUTURE to PAST, the second from a little FUTURE to a little PAST."""
    before, after = [[0.1, 0.8, 0.1], [0.1, 0.2, 0.7]], [[0.8, 0.1, 0.1], [0.2, 0.1, 0.7]]
    table = past_future.flip_table([np.array([before, before, after])], [{(0, 1), (1, 1)}])
    assert table.distance.tolist() == [1, 1]
    assert table.largest.tolist() == [True, False]
    found = past_future.flips_in_time(table, samples=50).set_index("measure")
    assert found.share.to_dict() == {"passes": 1, "largest": 0.5}
    assert found.n.tolist() == [2, 2]


def test_intervals_of_flips_are_over_sentences():
    """Words of a sentence flip alike: twenty sentences of ten words are twenty draws, not two hundred."""
    rows = [(sentence, sentence % 2) for sentence in range(20) for _ in range(10)]
    table = pd.DataFrame(rows, columns=["sentence", "distance"]).assign(largest=False)
    found = past_future.flips_in_time(table.replace({"distance": {0: 5}}), samples=2000).iloc[0]
    assert found.share == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 20), rel=0.15)


def test_each_word_of_the_table_of_flips_has_the_number_of_its_sentence():
    table = past_future.flip_table([MASS, MASS[:, :1], MASS[:, ::-1]], [{(1, 1)}, set(), {(0, 3), (1, 1)}])
    rows = table[["sentence", "word", "flip", "written"]].to_numpy()
    np.testing.assert_array_equal(rows, [[0, 1, np.nan, 2], [2, 0, np.nan, 4], [2, 1, 3, 2]])
    short = past_future.flip_table([MASS[2:].transpose(1, 0, 2).repeat(2, axis=1)], [{(3, 1)}])  # more words than steps
    assert short[["word", "written"]].to_numpy().tolist() == [[3, 2]]
    assert past_future.flip_table([], []).empty


def test_distances_beyond_the_reach_are_its_ends():
    table = past_future.distribution(np.array([-9, -2, 0, 0, 5, np.nan]), reach=2)
    assert table.distance[:5].tolist() == [-2, -1, 0, 1, 2]
    assert table.n.tolist() == [2, 0, 2, 0, 1, 1]
    assert table.share.sum() == pytest.approx(1)
    assert past_future.distribution(np.zeros(0), reach=1).share.isna().all()


def test_sentences_by_what_is_left_of_them():
    table = past_future.remainders([MASS, MASS[:, ::-1], MASS], [2, 1, 0])
    assert table.left[0] == pytest.approx(0.6)
    assert table["mean"][:2].tolist() == pytest.approx([0.3, 0.5])
    assert table.most[:2].tolist() == pytest.approx([0.5, 0.5])
    assert table.word.tolist() == [1, 0, -1]
    assert np.isnan(table.left[2])
