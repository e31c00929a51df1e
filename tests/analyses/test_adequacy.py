"""Coverage difference ratio and the proxies of over- and under-translation, against cases worked by hand."""

import io
import math

import pandas as pd
import pytest

from analyses import adequacy

REFERENCE = [{(0, 0), (1, 1), (2, 1), (4, 2)}, {(0, 0), (1, 1)}]
HYPOTHESIS = [{(0, 0), (2, 1), (3, 2)}, {(0, 1), (1, 0), (2, 2)}]


def test_the_worked_case():
    """The reference covers {0, 1, 2, 4} and {0, 1}, the hypothesis {0, 2, 3} and {0, 1, 2}: 2/4 and 2/2."""
    assert adequacy.coverage_difference_ratio(REFERENCE, HYPOTHESIS) == pytest.approx((4 / 6, 0.75))


def test_the_share_of_each_sentence_of_the_worked_case():
    pairs = [tuple(map(adequacy.coverage, pair)) for pair in zip(REFERENCE, HYPOTHESIS, strict=True)]
    assert [adequacy.covered_share(*pair) for pair in pairs] == [0.5, 1.0]
    assert adequacy.covered_share(set(), {1}) == 1.0


def test_more_coverage_than_the_reference_earns_nothing_and_sides_do_not_change_places():
    full = [{(i, i) for i in range(6)}, {(i, i) for i in range(3)}]
    assert adequacy.coverage_difference_ratio(REFERENCE, full) == (1.0, 1.0)
    assert adequacy.coverage_difference_ratio(full, REFERENCE) == pytest.approx((6 / 9, (4 / 6 + 2 / 3) / 2))


def test_sentences_whose_reference_covers_nothing_are_left_out():
    with_empty = adequacy.coverage_difference_ratio([*REFERENCE, set()], [*HYPOTHESIS, {(0, 0)}])
    assert with_empty == adequacy.coverage_difference_ratio(REFERENCE, HYPOTHESIS)
    assert all(math.isnan(value) for value in adequacy.coverage_difference_ratio([set()], [{(0, 0)}]))


@pytest.mark.parametrize(
    ("hypothesis", "links", "reference", "reference_links", "places"),
    [
        # "the the cat": die -> the twice, the reference once
        (["the", "the", "cat"], {(0, 0), (0, 1), (1, 2)}, ["the", "cat"], {(0, 0), (1, 1)}, {0}),
        # two different words for one are no repetition
        (["does", "not", "go"], {(0, 0), (0, 1), (1, 2)}, ["goes"], {(0, 0)}, set()),
        # the reference says it as often
        (["very", "very"], {(0, 0), (0, 1)}, ["very", "very"], {(0, 0), (0, 1)}, set()),
        # three times where the reference says it twice
        (["very"] * 3, {(0, 0), (0, 1), (0, 2)}, ["very", "very"], {(0, 0), (0, 1)}, {0}),
        # the same word for two source words, once each
        (["a", "cat", "a", "dog"], {(0, 0), (1, 1), (2, 2), (3, 3)}, ["cat", "dog"], {(1, 0), (3, 1)}, set()),
    ],
)
def test_repetition(hypothesis, links, reference, reference_links, places):
    assert adequacy.repeated(links, [reference_links], hypothesis, [reference]) == places


def test_a_repetition_of_each_word_is_allowed_by_the_reference_that_has_it():
    twice = {(0, 0), (0, 1)}
    hypothesis, links = ["old", "old", "aged", "aged"], {(0, 0), (0, 1), (0, 2), (0, 3)}
    references = ["old", "old"], ["aged", "aged"], ["old", "aged"]
    for allowed in (references[:2], references):
        assert adequacy.repeated(links, [twice] * len(allowed), hypothesis, allowed) == set()
    for one in references:
        assert adequacy.repeated(links, [twice], hypothesis, [one]) == {0}


def test_several_references_cover_what_any_covers_and_allow_what_any_repeats():
    """Together they cover {0, 1, 2, 3}, of which the hypothesis covers {0, 1}; "very very" is in the second."""
    hypothesis, said = {(0, 0), (0, 1), (1, 2), (1, 3)}, ["very", "very", "old", "old"]
    first, second = {(0, 0), (1, 1), (2, 1)}, {(0, 0), (0, 1), (3, 2)}
    texts = [["very", "old"]], [["very", "very", "aged"]]
    arguments = [hypothesis], [list("abcd")]
    one = adequacy.by_sentence([[first]], *arguments, [texts[0]], [said]).iloc[0]
    both = adequacy.by_sentence([[first], [second]], *arguments, texts, [said]).iloc[0]
    assert one[["covered", "missed", "repeated"]].tolist() == [3, 1, 2]
    assert both[["covered", "missed", "repeated"]].tolist() == [4, 2, 1]


def test_a_corpus_adds_words_up():
    table = adequacy.by_sentence(
        [[*REFERENCE, set()]],
        [*HYPOTHESIS, {(0, 0), (0, 1)}],
        [list("abcde"), list("abc"), ["x"]],
        [[list("ABC"), list("AB"), []]],
        [list("ABC"), list("BAC"), ["X", "X"]],
    )
    assert table["under"].tolist() == pytest.approx([0.5, 0.0, math.nan], nan_ok=True)
    kept = pd.read_csv(io.StringIO(table.to_csv(index=False)))  # all columns in one block, which is read-only
    for sentences in (table, kept):
        found = adequacy.intervals(sentences, samples=100).set_index("measure")
        assert found.loc["CDR", "score"] == pytest.approx(4 / 6)
        assert found.loc[adequacy.MACRO, "score"] == pytest.approx(0.75), "2/4 and 2/2; the third covers nothing"
        assert found.loc[adequacy.MACRO, "low"] == pytest.approx(0.5)
        assert found.loc[adequacy.MACRO, "high"] == 1.0
        assert found.loc["under (proxy, %)", "score"] == pytest.approx(200 / 6)
        assert found.loc["over (proxy, %)", "score"] == pytest.approx(100 / 9), "one repeated word of 5 + 3 + 1"


def test_resamples_that_cover_nothing_are_left_out():
    """One sentence of half coverage, one whose reference covers nothing: every resample with a ratio has that half."""
    table = adequacy.by_sentence(
        [[REFERENCE[0], set()]],
        [HYPOTHESIS[0], {(0, 0)}],
        [list("abcde"), ["x"]],
        [[list("ABC"), []]],
        [list("ABC"), ["X"]],
    )
    found = adequacy.intervals(table, samples=100).set_index("measure")
    assert found.loc[["CDR", adequacy.MACRO], ["score", "low", "high"]].to_numpy().ravel().tolist() == [0.5] * 6
