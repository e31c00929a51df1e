"""Words: F-measure by frequency and n-gram differences, worked by hand and against counting with Counter."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from analyses import words

REFERENCES = ["the cat sat on the mat", "the dog", "rare words"]
FIRST = ["the the the cat", "the dog", "rare"]
SECOND = ["a cat sat on the mat", "dog the", ""]
COUNTS = {"the": 10, "cat": 2, "dog": 2, "sat": 1, "on": 4, "mat": 1, "a": 9}


def test_matches_are_clipped_and_fall_into_the_bucket_of_their_word():
    found = words.matches(FIRST, REFERENCES, COUNTS, edges=(1, 2, 5))
    # buckets of frequency 0, 1, 2 to 4, from 5; then matched, in the reference, in the output
    assert found[0].tolist() == [[0, 0, 0], [0, 2, 0], [1, 2, 1], [2, 2, 3]]
    assert found[2].tolist() == [[1, 2, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_the_f_measure_is_worked_by_hand():
    table = words.by_frequency({"first": FIRST}, REFERENCES, COUNTS, edges=(1, 2, 5), samples=50).set_index("bucket")
    assert table.index.tolist() == ["0", "1", "2–4", "≥5"]
    assert table["n"].tolist() == [2, 2, 3, 3]
    frequent = table.loc["≥5"]  # "the": 3 matched of 3 in the references and of 4 written
    assert (frequent.precision, frequent.recall) == (3 / 4, 1.0)
    assert frequent.score == pytest.approx(2 * 0.75 * 1 / 1.75)
    assert table.loc["1", "score"] == 0
    assert np.isnan(table.loc["1", "precision"])
    assert (table.low <= table.score).all()
    assert (table.score <= table.high).all()


def test_the_buckets_of_compare_mt():
    assert words.bucket_labels() == ["0", "1", "2", "3", "4", "5–9", "10–99", "100–999", "≥1000"]
    with pytest.raises(ValueError, match="ascend"):
        words.matches(FIRST, REFERENCES, COUNTS, edges=(5, 2))


def test_a_perfect_output_has_f_1_in_every_bucket():
    table = words.by_frequency({"s": REFERENCES}, REFERENCES, words.frequencies(REFERENCES), samples=20)
    assert (table[["score", "low", "high", "precision", "recall"]] == 1).all(axis=None)
    assert table["n"].sum() == 10


def _naive(outputs, references, order):
    """n-gram -> matched, by counting each segment."""
    total = Counter()
    for output, reference in zip(outputs, references, strict=True):
        grams = [
            Counter(tuple(text.split()[i : i + order]) for i in range(len(text.split()) - order + 1))
            for text in (output, reference)
        ]
        total += grams[0] & grams[1]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_ngram_differences_are_those_of_counting(seed):
    draw = random.Random(seed)
    sides = [[" ".join(draw.choices("abcd", k=draw.randrange(9))) for _ in range(30)] for _ in range(3)]
    first, second, references = sides
    table = words.ngram_differences(first, second, references, orders=(1, 2, 3))
    for order in (1, 2, 3):
        ours, theirs = _naive(first, references, order), _naive(second, references, order)
        rows = table[table.order == order]
        expected = {gram: (ours[gram], theirs[gram]) for gram in ours | theirs if ours[gram] != theirs[gram]}
        grams = [tuple(ngram.split()) for ngram in rows.ngram]
        assert dict(zip(grams, zip(rows["first"], rows.second, strict=True), strict=True)) == expected
        assert (rows.difference == rows["first"] - rows.second).all()
        for row in rows.itertuples():
            assert row.reference == sum(
                _naive(references, references, order)[gram] for gram in [tuple(row.ngram.split())]
            )
            ahead, behind = (first, second) if row.difference > 0 else (second, first)
            for number in row.examples:
                gram = tuple(row.ngram.split())
                mine, other = (_naive([side[number]], [references[number]], order)[gram] for side in (ahead, behind))
                assert mine > other
            assert row.examples


def test_ngrams_are_ranked_as_compare_mt_ranks_them():
    table = words.ngram_differences(FIRST, SECOND, REFERENCES)
    assert (np.diff(table.ratio) <= 0).all()
    best = table[table.ngram == "the dog"].iloc[0]
    assert (best["first"], best.second, best.reference, best.ratio, best.examples) == (1, 0, 1, 2 / 3, (1,))
    assert table.iloc[-1]["first"] < table.iloc[-1].second
    assert "on the mat" in table[table.difference < 0].ngram.tolist()


def test_a_system_that_writes_nothing_matches_nothing():
    table = words.by_frequency({"s": ["", "", ""]}, REFERENCES, COUNTS, samples=5)
    assert (table.matched == 0).all()
    assert (table.recall == 0).all()
    assert table.n.sum() == 10
    ahead = words.ngram_differences(REFERENCES, [""] * 3, REFERENCES, orders=(1,))
    assert (ahead.second == 0).all()
    assert dict(zip(ahead.ngram, ahead["first"], strict=True)) == words.frequencies(REFERENCES)


def test_sides_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="1, 2 lines"):
        words.matches(["a", "b"], ["a"], {})


def test_the_share_of_words_without_a_count():
    assert words.unseen(["a b c", "d a"], {"a": 3, "b": 0, "d": 1}) == pytest.approx(2 / 5)
    assert math.isnan(words.unseen(["", " "], {"a": 3}))
