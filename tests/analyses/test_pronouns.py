"""Pronoun outcomes on sentences worked by hand, and what counting leaves undecided."""

import pytest

from analyses import pronouns, proportion_correct

REFERENCE = ["die", "Frau", "isst", "ihn", "heute", "."]
TRUTH = {
    "pronouns": [
        {
            "target": 3,
            "source": 3,
            "antecedent": {"sentence": -2, "word": 1},
            "gender": "m",
            "alternatives": ["sie", "es"],
        }
    ],
    "phenomena": ["needs_order"],
}


@pytest.mark.parametrize(
    ("hypothesis", "outcome", "taken", "reason"),
    [
        ("heute isst ihn die Frau .", "right", "ihn", ""),  # elsewhere, but there
        ("die Frau isst es heute .", "wrong", "es", ""),
        ("die Frau isst den Kuchen heute .", "undecidable", None, "missing"),
        ("sie isst ihn heute .", "undecidable", None, "extra"),
    ],
)
def test_one_pronoun(hypothesis, outcome, taken, reason):
    table = pronouns.outcomes([hypothesis.split()], [REFERENCE], [TRUTH])
    row = table.iloc[0]
    assert (row.outcome, row.taken, row.reason) == (outcome, taken, reason)
    assert (row.distance, row.gender, bool(row.needs_order), row.right) == (2, "m", True, "ihn")


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        ("es a sie", proportion_correct.Selection("sie")),  # the same words in another order
        ("es a es", proportion_correct.Selection("es")),
        ("er a es", proportion_correct.Selection("er")),
        ("sie a sie", proportion_correct.Selection("sie")),  # the other one changed
        ("er a er", proportion_correct.Selection(None, "ambiguous")),  # both changed
        ("sie", proportion_correct.Selection(None, "missing")),
        ("sie es es", proportion_correct.Selection(None, "extra")),
    ],
)
def test_two_words_of_the_set_in_one_reference(hypothesis, expected):
    assert proportion_correct.selection(["sie", "a", "es"], hypothesis.split(), "sie", ["er", "es"]) == expected


def test_of_two_equal_words_it_is_not_clear_which_changed():
    reference = ["sie", "a", "sie"]
    assert proportion_correct.selection(
        reference, ["sie", "a", "er"], "sie", ["er", "es"]
    ) == proportion_correct.Selection(None, "ambiguous")
    assert proportion_correct.selection(reference, reference, "sie", ["er", "es"]) == proportion_correct.Selection(
        "sie"
    )


def test_accuracy_by_distance_leaves_out_the_undecided():
    near = {**TRUTH, "pronouns": [{**TRUTH["pronouns"][0], "antecedent": {"sentence": -1, "word": 0}}]}
    right, wrong, missing = (f"die Frau isst {form} heute .".split() for form in ("ihn", "es", "alles"))
    judged = pronouns.outcomes([right, wrong, right, missing], [REFERENCE] * 4, [near, TRUTH, TRUTH, TRUTH])
    table = proportion_correct.share_table(judged, "distance", "right", "wrong")
    assert table.distance.tolist() == [1, 2]
    assert table[["n", "right", "wrong", "undecidable"]].to_numpy().tolist() == [[1, 1, 0, 0], [3, 1, 1, 1]]
    assert table.share.tolist() == [1.0, 0.5]
    overall = proportion_correct.share_table(judged, None, "right", "wrong").iloc[0]
    assert overall.share == pytest.approx(2 / 3)
    z, n, p = 1.959963985, 3, 2 / 3  # Wilson 1927
    centre, reach = p + z**2 / (2 * n), z * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    assert overall.low == pytest.approx((centre - reach) / (1 + z**2 / n))
    assert overall.high == pytest.approx((centre + reach) / (1 + z**2 / n))


def test_what_has_no_value_is_a_group_of_its_own():
    hypotheses = [f"die Frau isst {form} heute .".split() for form in ("alles", "ihn", "es", "alles")]
    judged = pronouns.outcomes(hypotheses, [REFERENCE] * 4, [TRUTH] * 4)
    table = proportion_correct.share_table(judged, "taken", "right", "wrong")
    assert table[["taken", "n", "right", "wrong", "undecidable"]].to_numpy().tolist() == [
        ["es", 1, 0, 1, 0],
        ["ihn", 1, 1, 0, 0],
        ["(none)", 2, 0, 0, 2],
    ]


def test_contrastive_variants_differ_in_the_form_alone():
    made = pronouns.variants([REFERENCE], [TRUTH])
    assert made.form.tolist() == ["ihn", "sie", "es"]
    assert made.correct.tolist() == [True, False, False]
    assert made.tokens[1] == ("die", "Frau", "isst", "sie", "heute", ".")


def test_truth_of_another_corpus_is_refused():
    with pytest.raises(ValueError, match="Truth record 0 has a pronoun at word 3"):
        pronouns.outcomes([REFERENCE], [["zu", "kurz"]], [TRUTH])
    with pytest.raises(ValueError, match="2 hypotheses, 1 references"):
        pronouns.outcomes([REFERENCE] * 2, [REFERENCE], [TRUTH])
