"""Ratings: Krippendorff's own worked values, and means, intervals and differences worked by hand."""

import numpy as np
import pandas as pd
import pytest

from analyses.ratings import agreement, differences, intervals, krippendorff_alpha, whole

_ = np.nan
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C to E: four observers, twelve units.
PUBLISHED = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
])  # fmt: skip


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_krippendorff(level, alpha):
    assert krippendorff_alpha(PUBLISHED, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_full_agreement_is_one_and_of_nothing_to_compare_unknown():
    assert krippendorff_alpha(np.array([[1, 2, 5], [1, 2, 5]]), "ordinal") == pytest.approx(1)
    assert np.isnan(krippendorff_alpha(np.array([[3, 3], [3, 3]]), "ordinal"))
    assert np.isnan(krippendorff_alpha(np.array([[1, 2, _], [_, _, 3]]), "interval"))
    assert np.isnan(krippendorff_alpha(np.full((2, 2), _), "nominal"))


def _table(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["rater", "sentence", "system", "quality", "over", "under", "words"])


TWO_SENTENCES = _table(
    ("ann", 0, "old", 2, 1, 3, 10), ("ann", 0, "new", 4, 0, 1, 10),
    ("bob", 0, "old", 4, 0, 1, 10), ("bob", 0, "new", 5, 0, 0, 10),
    ("ann", 1, "old", 1, 0, 6, 30), ("ann", 1, "new", 5, 0, 0, 30),
)  # fmt: skip


def test_means_count_every_sentence_once_and_shares_count_source_words():
    found = intervals(TWO_SENTENCES).set_index(["system", "measure"])
    assert found.loc[("old", "quality"), "score"] == pytest.approx((3 + 1) / 2)  # the first has the mean of two raters
    assert found.loc[("new", "quality"), "score"] == pytest.approx((4.5 + 5) / 2)
    assert found.loc[("old", "over-translated (%)"), "score"] == pytest.approx(100 * 0.5 / 40)
    assert found.loc[("old", "under-translated (%)"), "score"] == pytest.approx(100 * (2 + 6) / 40)
    assert (found["n"] == 2).all()


def test_intervals_of_two_sentences_reach_from_one_to_the_other():
    found = intervals(TWO_SENTENCES, samples=400).set_index(["system", "measure"])
    assert found.loc[("old", "quality"), ["low", "high"]].tolist() == [1.0, 3.0]
    assert found.loc[("old", "under-translated (%)"), ["low", "high"]].tolist() == pytest.approx([20.0, 20.0])


def test_differences_that_are_equal_are_ties_however_they_were_rounded():
    """13/3 - 4 and 10/3 - 3 are a third both; floats have them apart in the last digits, which are no rank."""
    sizes = [(13, 12), (10, 9), (12, 13), (13, 12), (10, 9), (9, 10), (13, 11), (10, 8)]  # sums over three raters

    def rated(times):
        return _table(*[
            (rater, s, system, times * share, 0, 0, 10)
            for s, pair in enumerate(sizes)
            for system, total in zip(("new", "old"), pair, strict=True)
            for rater, share in zip("abc", (total - 6, 3, 3), strict=True)
        ])  # fmt: skip

    thirds, wholes = (differences(rated(times), "old").set_index("measure") for times in (1, 3))
    assert wholes.loc["quality", "difference"] == pytest.approx(3 * thirds.loc["quality", "difference"])
    assert thirds.loc["quality", "p_value"] == wholes.loc["quality", "p_value"]


def test_differences_are_paired():
    rows = [
        ("ann", s, system, q, 0, u, 100) for s in range(8) for system, q, u in (("old", 3, 9 + s), ("new", 3, 8 - s))
    ]
    found = differences(_table(*rows), "old").set_index("measure")
    assert found.loc["quality", ["difference", "low", "high", "p_value"]].tolist() == [0, 0, 0, 1]
    under = found.loc["under-translated (%)"]
    assert under["difference"] == pytest.approx(-8.0)  # -1, -3, … -15: every sentence in the same direction
    assert under["p_value"] == pytest.approx(2 / 1001)  # all resamples on one side
    assert under["low"] < -8 < under["high"] < 0
    assert found["p_holm"].tolist() == found["p_value"].tolist()  # one system: nothing to correct
    with pytest.raises(ValueError, match="'none' was not rated; rated were old, new"):
        differences(_table(*rows), "none")


def test_quality_has_the_exact_p_value_of_the_signed_rank_test_of_sentences_that_differ():
    rows = [
        ("ann", s, system, 3 + (system == "new" and s < 4), 0, 0, 10) for s in range(100) for system in ("old", "new")
    ]
    quality = differences(_table(*rows), "old").set_index("measure").loc["quality"]
    assert quality["difference"] == pytest.approx(0.04)
    assert quality["p_value"] == pytest.approx(2 / 2**4)


def test_p_of_a_share_goes_with_its_interval_where_long_sentences_decide():
    """Thirty short sentences are a word worse, five long ones fifteen words better: the share of words falls."""
    sentences = [(s, 5, 1, 0) for s in range(30)] + [(s, 60, 0, 15) for s in range(30, 35)]
    rows = [
        ("ann", s, system, 3, 0, new if system == "new" else old, words)
        for s, words, new, old in sentences for system in ("old", "new")
    ]  # fmt: skip
    under = differences(_table(*rows), "old").set_index("measure").loc["under-translated (%)"]
    assert under["difference"] == pytest.approx(100 * (30 - 75) / 450)
    assert (under["p_value"] < 0.05) == (not under["low"] <= 0 <= under["high"])


def test_a_sentence_counts_where_the_rater_rated_every_system():
    started = pd.concat([TWO_SENTENCES, _table(("bob", 1, "new", 1, 0, 0, 30))])
    pd.testing.assert_frame_equal(whole(started, ["old", "new"]), TWO_SENTENCES)
    with pytest.raises(ValueError, match="sentence 7 of old was not rated"):
        intervals(pd.concat([TWO_SENTENCES, _table(("bob", 7, "new", 1, 0, 0, 30))]))
    with pytest.raises(ValueError, match="no ratings"):
        intervals(whole(TWO_SENTENCES, ["old", "new", "third"]))


def test_agreement_says_over_what_it_is_counted():
    found = agreement(TWO_SENTENCES).set_index("measure")
    assert found["raters"].tolist() == [2, 2, 2]
    assert found["units"].tolist() == [2, 2, 2]  # both translations of the first sentence
    shared = np.array([[2.0, 4.0], [4.0, 5.0]])
    assert found.loc["quality", "alpha"] == pytest.approx(krippendorff_alpha(shared, "ordinal"))
