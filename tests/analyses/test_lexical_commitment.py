"""Commitments kept and broken, on collocations worked by hand."""

import math

import pytest

from analyses import lexical_commitment, proportion_correct

REFERENCE = ["heute", "trifft", "der", "Mann", "eine", "Entscheidung", "."]
BOTH = ("Entscheidung", "eine")
RECORD = {
    "target": 1,
    "chosen": "trifft",
    "alternatives": ["fasst"],
    "forces": [4, 5],
    "continuations": {"trifft": ["eine", "Entscheidung"], "fasst": ["einen", "Entschluss"]},
}


def judge(hypothesis, record=RECORD, reference=REFERENCE):
    table = lexical_commitment.outcomes([hypothesis.split()], [reference], [{"commitments": [record]}])
    return table.iloc[0]


@pytest.mark.parametrize(
    ("hypothesis", "taken", "outcome", "missing", "rivals"),
    [
        ("heute trifft der Mann eine Entscheidung .", "trifft", "kept", (), ()),
        ("der Mann trifft heute eine Entscheidung .", "trifft", "kept", (), ()),
        ("heute fasst der Mann einen Entschluss .", "fasst", "kept", (), ()),
        ("heute trifft der Mann eine Entschluss .", "trifft", "broken", ("Entscheidung",), ("Entschluss",)),
        ("heute fasst der Mann eine Entscheidung .", "fasst", "broken", ("einen", "Entschluss"), BOTH),
        ("heute trifft der Mann eine Frau .", "trifft", "undecidable", ("Entscheidung",), ()),
    ],
)
def test_first_word_and_its_continuation(hypothesis, taken, outcome, missing, rivals):
    row = judge(hypothesis)
    assert (row.taken, row.outcome, row.missing, row.rivals) == (taken, outcome, missing, rivals)
    assert row.reason == ("absent" if outcome == "undecidable" else "")
    assert hypothesis.split()[int(row.position)] == taken
    assert row.distance == 4


@pytest.mark.parametrize(
    ("hypothesis", "reason"),
    [
        ("heute isst der Mann eine Entscheidung .", "missing"),
        ("heute trifft der Mann und fasst einen Entschluss .", "extra"),
    ],
)
def test_what_cannot_be_told(hypothesis, reason):
    row = judge(hypothesis)
    assert (row.taken, row.outcome, row.reason) == (None, "undecidable", reason)
    assert math.isnan(row.position)


def test_a_forced_word_that_stands_elsewhere_too_is_counted_not_found():
    """The other "eine" does not stand in for the one that the verb forces."""
    reference = ["eine", "Frau", "trifft", "eine", "Entscheidung", "."]
    record = {**RECORD, "target": 2, "forces": [3, 4]}
    assert judge("eine Frau trifft einen Entschluss .", record, reference).missing == ("eine", "Entscheidung")
    assert judge("eine Frau fasst einen Entschluss .", record, reference).outcome == "kept"


def test_a_bracket_without_alternatives_is_broken_when_it_stays_open():
    reference = ["der", "Mann", "kommt", "heute", "an", "."]
    record = {"target": 2, "chosen": "kommt", "alternatives": [], "forces": [4]}
    assert judge("heute kommt der Mann an .", record, reference).outcome == "kept"
    row = judge("heute kommt der Mann .", record, reference)
    assert (row.outcome, row.missing) == ("broken", ("an",))


def test_two_choices_of_one_word_are_judged_together():
    """Both mentions of the sofa change; neither takes the other's word."""
    reference = ["eine", "Couch", "und", "das", "Sofa"]
    records = [
        {"target": 0, "chosen": "eine", "alternatives": ["ein"], "forces": [1],
         "continuations": {"ein": ["Sofa"], "eine": ["Couch"]}},
        {"target": 3, "chosen": "das", "alternatives": ["die"], "forces": [4],
         "continuations": {"das": ["Sofa"], "die": ["Couch"]}},
    ]  # fmt: skip

    def outcomes(hypothesis):
        return list(lexical_commitment.outcomes([hypothesis.split()], [reference], [{"commitments": records}]).outcome)

    assert outcomes("ein Sofa und die Couch") == ["kept", "kept"]
    assert outcomes("ein Sofa und das Sofa") == ["kept", "kept"]
    assert outcomes("eine Sofa und das Sofa") == ["broken", "kept"]
    assert outcomes("eine Sofa und der Sofa") == ["undecidable", "undecidable"]  # whose Sofa is it?


def test_exchanged_first_words_are_not_taken_for_a_break():
    reference = ["den", "Beutel", "und", "die", "Tasche"]
    both = {"den": ["Beutel"], "die": ["Tasche"]}
    records = [
        {"target": 0, "chosen": "den", "alternatives": ["die"], "forces": [1], "continuations": both},
        {"target": 3, "chosen": "die", "alternatives": ["den"], "forces": [4], "continuations": both},
    ]
    exchanged = [["die", "Tasche", "und", "den", "Beutel"]]
    assert list(lexical_commitment.outcomes(exchanged, [reference], [{"commitments": records}]).outcome) == [
        "kept",
        "kept",
    ]
    mixed = [["den", "Tasche", "und", "die", "Tasche"]]
    judged = lexical_commitment.outcomes(mixed, [reference], [{"commitments": records}])
    assert list(judged.reason) == ["ambiguous", ""]


def test_words_that_every_choice_forces_tell_nothing():
    reference = ["die", "alte", "Aufnahme"]
    record = {
        "target": 0,
        "chosen": "die",
        "alternatives": ["das"],
        "forces": [1, 2],
        "continuations": {"das": ["alte", "Foto"], "die": ["alte", "Aufnahme"]},
    }
    assert judge("die uralte Aufnahme", record, reference).outcome == "kept"
    assert judge("die alte Foto", record, reference).outcome == "broken"


def test_without_continuations_only_the_references_choice_can_be_judged():
    record = {name: value for name, value in RECORD.items() if name != "continuations"}
    assert judge(" ".join(REFERENCE), record).outcome == "kept"
    row = judge("heute fasst der Mann einen Entschluss .", record)
    assert (row.taken, row.outcome, row.reason) == (None, "undecidable", "unknown continuation")


def test_share_of_broken_commitments():
    lines = [
        "heute trifft der Mann eine Entscheidung .",
        "heute trifft der Mann einen Entschluss .",
        "heute isst der Mann .",
    ]
    judged = lexical_commitment.outcomes(
        [line.split() for line in lines], [REFERENCE] * 3, [{"commitments": [RECORD]}] * 3
    )
    [row] = proportion_correct.share_table(judged, "distance", "broken", "kept").itertuples()
    assert (row.distance, row.n, row.broken, row.kept, row.undecidable, row.share) == (4, 3, 1, 1, 1, 0.5)


def test_truth_of_another_corpus_is_refused():
    with pytest.raises(ValueError, match="commits to 'trifft' at word 1"):
        judge("zu kurz", RECORD, ["zu", "kurz"])
