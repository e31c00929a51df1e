"""Rescoring by hand-worked lists: which hypothesis weights choose, what it scores, what tuning finds."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from analyses.reranking import GRID, Lists, compared, curve, grid_of, tuned
from analyses.scores import extract

REFERENCES = ["the cat sat on the mat", "a dog sleeps in the sun", "we see the old man today"]
# Of each sentence the search's choice first; the right one stands last, and is the best by PAST.
WRITTEN = [
    ["the cat sat on a mat", "the cat sat on the mat"],
    ["a dog sleeps", "a dog sleeps in a sun", "a dog sleeps in the sun"],
    ["we see the old man today"],
]
PARTS = ("main", "past", "length")
VALUES = [
    [-1.0, -6.0, 7.0], [-2.0, -3.0, 7.0],
    [-1.0, -5.0, 4.0], [-2.0, -5.0, 7.0], [-4.0, -1.0, 7.0],
    [-1.0, -1.0, 7.0],
]  # fmt: skip


@pytest.fixture
def lists():
    lines = [line for own in WRITTEN for line in own]
    repeated = [line for line, own in zip(REFERENCES, WRITTEN, strict=True) for _ in own]
    return Lists(PARTS, np.array(VALUES), np.array([0, 2, 5, 6]), extract(lines, repeated))


def bleu(*lines):
    return BLEU().corpus_score(list(lines), [REFERENCES]).score


@pytest.mark.parametrize(
    ("weights", "rows"),
    [
        ({"main": 1}, [0, 2, 5]),
        ({"past": 1}, [1, 4, 5]),
        ({"main": 1, "past": 0.3}, [0, 2, 5]),  # -2.8 against -2.9; -2.5, -3.5, -4.3
        ({"main": 1, "past": 0.5}, [1, 2, 5]),  # -4 against -3.5; -3.5, -4.5, -4.5
        ({"main": 1, "past": 1}, [1, 4, 5]),  # -6, -7, -5
        ({"main": 1, "length": 1}, [0, 3, 5]),  # 3, 5, 3
        ({}, [0, 2, 5]),  # the first among equals
    ],
)
def test_weights_choose(lists, weights, rows):
    assert lists.chosen(weights).tolist() == rows


def test_scores_are_sacrebleus_of_what_is_chosen(lists):
    table = compared(lists, {"search": None, "ones": lists.ones, "past": {"past": 1.0}}, samples=50).set_index("choice")
    assert table.score["search"] == pytest.approx(bleu("the cat sat on a mat", "a dog sleeps", REFERENCES[2]))
    assert table.score["ones"] == pytest.approx(100)
    assert table.delta["ones"] == pytest.approx(100 - table.score["search"])
    assert table.changed.tolist() == pytest.approx([0, 2 / 3, 2 / 3])
    assert np.isnan(table.delta["search"])
    assert (table.low <= table.score).all()


def test_ones_are_the_systems_own_head_and_the_others_without_length(lists):
    assert lists.ones == {"main": 1.0, "past": 1.0, "length": 0.0}
    assert lists.free == ("past", "length")
    mixed = Lists(("main", "decoder", "future", "length"), np.zeros((1, 4)), np.array([0, 1]), lists.statistics)
    assert mixed.ones == {"decoder": 1.0, "future": 1.0, "length": 0.0}
    assert len(mixed) == 1


def test_a_curve_is_the_scores_along_one_weight(lists):
    table = curve(lists, lists.ones, "past", (0, 0.5, 1), samples=50)
    assert table.changed.tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    assert table.score.tolist() == pytest.approx([lists.of({"main": 1.0, "past": w}).total for w in (0, 0.5, 1)])
    whole = curve(lists, lists.ones, "past", samples=5)
    assert whole.weight.tolist() == list(GRID)
    assert min(grid_of("length")) < 0


def test_tuning_finds_the_best_and_leaves_what_changes_nothing(lists):
    assert tuned(lists) == lists.ones  # they have the best score there is
    worse = Lists(PARTS, np.array(VALUES) * [1, -1, 1], lists.starts, lists.statistics)  # PAST misleads
    assert worse.of(worse.ones).total < 100
    found = tuned(worse)
    assert worse.of(found).total == max(
        worse.of({"main": 1.0, "past": past, "length": length}).total for past in GRID for length in grid_of("length")
    )
    assert found["main"] == 1.0


def test_tuning_by_ter_finds_the_lowest(lists):
    lines = [line for own in WRITTEN for line in own]
    repeated = [line for line, own in zip(REFERENCES, WRITTEN, strict=True) for _ in own]
    by_ter = Lists(PARTS, np.array(VALUES) * [1, -1, 1], lists.starts, extract(lines, repeated, "ter"))
    assert by_ter.of(tuned(by_ter)).total == min(
        by_ter.of({"main": 1.0, "past": past, "length": length}).total for past in GRID for length in grid_of("length")
    )


def test_a_weight_of_no_part_is_refused(lists):
    with pytest.raises(ValueError, match="these lists have no part 'pasts'; there are main, past, length"):
        lists.chosen({"pasts": 1})
