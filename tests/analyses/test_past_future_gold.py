"""PAST and FUTURE against the truth: cells by hand, areas by counting pairs, calibration, redundancy."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from analyses import past_future_gold as truth

# Word 0 is written at place 0, word 1 at 2 and 4, word 5 at 1; words 2 to 4 have no counterpart.
LINKS = {(0, 0), (1, 2), (1, 4), (5, 1)}


def test_a_cell_is_known_before_its_first_and_after_its_last_counterpart():
    found = truth.cells(LINKS, 6, 6)
    states = {word: {row.step: row.past for row in found[found.word == word].itertuples()} for word in set(found.word)}
    assert states == {
        0: dict.fromkeys(range(1, 6), True),
        1: {0: False, 1: False, 5: True},
        5: {0: False, 2: True, 3: True, 4: True, 5: True},
    }
    moved = found.drop_duplicates("word").set_index("word").moved
    assert moved.to_dict() == {0: False, 1: False, 5: True}  # 5 from 1 is more than three places


def test_the_word_just_written_may_count_as_future():
    found = truth.cells(LINKS, 6, 6, present="future")
    assert len(found) == 3 * 6
    assert found[found.word == 1].past.tolist() == [False, False, False, False, False, True]
    assert found[found.word == 0].past.tolist() == [False, True, True, True, True, True]


def test_moved_is_further_than_three_places_from_every_counterpart():
    for links, moved in (({(0, 3)}, False), ({(0, 4)}, True), ({(0, 3), (0, 9)}, False), ({(9, 0), (9, 5)}, True)):
        assert set(truth.cells(links, 10, 10).moved) == {moved}


def test_the_rules_by_hand():
    np.testing.assert_allclose(truth.position_scores(2, 4)[0], [0.25, 0, -0.25, -0.5])
    assert (truth.position_scores(3, 3) > 0).tolist() == np.tri(3, k=-1, dtype=bool).tolist()  # i / I < t / T
    attention = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_allclose(truth.cumulative_attention(attention), [[0, 0], [0.9, 0.1], [1.1, 0.9]])
    layers = np.stack([attention, attention[::-1]])
    np.testing.assert_allclose(truth.cumulative_attention(layers)[1], truth.cumulative_attention(attention[::-1]))


def test_a_cell_is_misjudged_where_the_larger_share_contradicts_it():
    shares, past = np.array([0.9, 0.9, 0.1, 0.1, 0.5, 0.5]), np.array([True, False, True, False, True, False])
    assert truth.misjudged(shares, past).tolist() == [False, True, True, False, False, False]


def by_pairs(scores, positive, weights):
    """Every positive beside every negative."""
    won = total = 0.0
    for one, chosen, weight in zip(scores, positive, weights, strict=True):
        for other, also, against in zip(scores, positive, weights, strict=True):
            if chosen and not also:
                total += weight * against
                won += weight * against * ((one > other) + 0.5 * (one == other))
    return won / total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("levels", [3, 1000])
def test_the_area_counts_pairs(seed, levels):
    drawn = np.random.default_rng(seed)
    scores, positive = drawn.integers(levels, size=40) / levels, drawn.random(40) < 0.4
    weights = drawn.integers(4, size=40)
    found = truth.area_under_curve(scores, positive)
    assert found == pytest.approx(by_pairs(scores, positive, np.ones(40)))
    statistic = mannwhitneyu(scores[positive], scores[~positive]).statistic
    assert found == pytest.approx(statistic / positive.sum() / (~positive).sum())
    assert truth.area_under_curve(scores, positive, weights) == pytest.approx(by_pairs(scores, positive, weights))
    assert truth.area_under_curve(-scores, positive) == pytest.approx(1 - found)


def test_the_area_of_the_right_order_of_no_order_and_of_one_kind():
    past = np.array([False, False, True, True])
    assert truth.area_under_curve([0, 1, 2, 3], past) == 1
    assert truth.area_under_curve([5, 5, 5, 5], past) == 0.5
    assert np.isnan(truth.area_under_curve([1, 2], np.array([True, True])))
    assert np.isnan(truth.area_under_curve([], np.zeros(0, dtype=bool)))


@pytest.fixture
def corpus():
    """Cells of forty sentences, and the scores of a good system, a poor one and its double."""
    drawn = np.random.default_rng(3)
    sentences = np.repeat(np.arange(40), drawn.integers(3, 12, size=40))
    past, moved = drawn.random(len(sentences)) < 0.5, drawn.random(len(sentences)) < 0.3
    table = pd.DataFrame({"sentence": sentences, "past": past, "moved": moved})
    good, poor = past + drawn.normal(0, 0.5, len(past)), past + drawn.normal(0, 3, len(past))
    return table, {"good": good, "poor": poor, "double": 7 * poor - 1}


def test_areas_of_systems_on_the_same_resamples(corpus):
    table, scores = corpus
    found = truth.areas(table, scores, samples=300)
    rows = found.table.set_index(["system", "words"])
    for name, values in scores.items():
        assert rows.auc[name, "all"] == pytest.approx(truth.area_under_curve(values, table.past))
        moved = table.moved.to_numpy()
        assert rows.auc[name, "moved"] == pytest.approx(truth.area_under_curve(values[moved], table.past[moved]))
    assert rows.n["good", "moved"] == table.moved.sum() < rows.n["good", "all"] == len(table)
    assert (rows.low < rows.auc).all()
    assert (rows.auc < rows.high).all()
    assert found.difference("poor", "double") == pytest.approx((0, 0, 0))
    delta, low, high = found.difference("good", "poor")
    assert delta == pytest.approx(rows.auc["good", "all"] - rows.auc["poor", "all"])
    assert 0 < low < delta < high


def test_resampling_weighs_whole_sentences(corpus):
    """The same draw as of any other bootstrap here, sentences repeated row by row."""
    table, scores = corpus
    found = truth.areas(table, {"poor": scores["poor"]}, samples=3, seed=9)
    generator = np.random.default_rng(9)
    for number in range(3):
        picked = generator.integers(40, size=40)
        rows = np.concatenate([np.flatnonzero(table.sentence == sentence) for sentence in picked])
        wanted = truth.area_under_curve(scores["poor"][rows], table.past.to_numpy()[rows])
        assert found.resampled["poor", "all"][number] == pytest.approx(wanted)


def test_words_that_never_move_have_no_area(corpus):
    table, scores = corpus
    rows = truth.areas(table.assign(moved=False), scores, samples=5).table
    assert rows[rows.words == "moved"][["auc", "low", "high"]].isna().all(axis=None)


def test_calibration_by_hand():
    table = pd.DataFrame({"sentence": [0, 0, 1, 1, 1], "past": [True, False, True, True, True]})
    found = truth.calibration(table, np.array([0.1, 0.3, 0.8, 1.0, 1.7]), bins=2, samples=50)
    assert found.n.tolist() == [2, 3]
    assert found.predicted.tolist() == pytest.approx([0.2, (0.8 + 1 + 1) / 3])  # above 1 is 1
    assert found.share.tolist() == [0.5, 1.0]
    assert truth.calibration_error(found) == pytest.approx((2 * 0.3 + 3 * (1 - 2.8 / 3)) / 5)


def test_who_says_how_often_is_calibrated():
    drawn = np.random.default_rng(1)
    said = drawn.random(20_000)
    table = pd.DataFrame({"sentence": np.arange(20_000) // 20, "past": drawn.random(20_000) < said})
    honest = truth.calibration(table, said, samples=200)
    assert truth.calibration_error(honest) < 0.02
    assert ((honest.low < honest.predicted) & (honest.predicted < honest.high)).mean() >= 0.8
    assert truth.calibration_error(truth.calibration(table, 1 - said, samples=5)) > 0.4


def test_redundant_mass_of_words_without_counterpart():
    first = np.zeros((2, 3, 3))
    first[..., 2] = [[0.9, 0.1, 0.2], [0.7, 0.3, 0.4]]
    second = np.full((1, 3, 3), 0.5)
    found = truth.redundancy([first, second], [{0}, {2}], [2, 3], samples=50).set_index("kind")
    # The third word of the first sentence is its end and does not count.
    assert found.mass["without"] == pytest.approx((0.8 + 0.5) / 2)
    assert found.mass["with"] == pytest.approx((0.2 + 0.5 + 0.5) / 3)
    assert found.n.to_dict() == {"without": 2, "with": 3}
    assert found.auc.tolist() == pytest.approx([(3 + 1 + 0.5 + 0.5) / 6] * 2)  # 0.8 beats all, 0.5 beats 0.2
