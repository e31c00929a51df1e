"""Beam sizes: scores by sacreBLEU itself, hand-counted lengths and search errors, Wilson intervals by SciPy."""

import math

import pytest
from sacrebleu.metrics import BLEU
from scipy.stats import binomtest

from analyses.beam_sizes import quality, search_errors
from analyses.wilson import wilson

REFERENCES = ["the dog sleeps on the mat", "a man sees two trees"]


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (3, 10), (271, 1000)])
def test_wilson_is_scipys(successes, n):
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_counted_has_no_interval():
    assert all(math.isnan(end) for end in wilson(0, 0))


def test_scores_lengths_and_empty_outputs():
    outputs = {1: ["the dog sleeps on a mat", "a man sees"], 64: ["", "a man sees two trees"]}
    table = quality(outputs, REFERENCES, samples=20).set_index("size")
    for size, lines in outputs.items():
        assert table.loc[size, "bleu"] == pytest.approx(BLEU().corpus_score(lines, [REFERENCES]).score)
    assert table["length_ratio"].tolist() == pytest.approx([9 / 11, 5 / 11])
    assert table["empty"].tolist() == [0, 1]
    assert table["n"].tolist() == [2, 2]


def test_search_errors_are_counted_over_the_decided_sentences():
    found = {1: [-3.0, -2.0, -math.inf, -9.0], 2: [-2.0, -2.0, -4.0, -9.0]}
    table = search_errors(found, [-2.0, -2.0 + 1e-5, -3.5, -1.0], [True, True, True, False]).set_index("size")
    assert table["errors"].tolist() == [2, 1]  # the last sentence was not decided; 1e-5 nat is noise
    assert table["n"].tolist() == [3, 3]
    assert table["error_rate"].tolist() == pytest.approx([2 / 3, 1 / 3])
    expected = binomtest(2, 3).proportion_ci(0.95, method="wilson")
    assert table.loc[1, ["error_low", "error_high"]].tolist() == pytest.approx([expected.low, expected.high])


def test_without_a_decided_sentence_there_is_no_rate():
    table = search_errors({1: [-1.0]}, [-1.0], [False])
    assert table["n"].tolist() == [0]
    assert math.isnan(table["error_rate"][0])
