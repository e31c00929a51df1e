"""Pronouns and commitments judged on the controlled corpus itself, where every right answer is known."""

import random

import pytest

from analyses import lexical_commitment, pronouns
from core_models.text.controlled import generate


@pytest.fixture(scope="module")
def corpus():
    made = generate(sentences=20, dev=20, test=800, seed=5)
    references = [line.split() for line in made.test.targets]
    return references, [line.split() for line in made.second_targets], made.test.truth


def test_the_reference_is_right_throughout(corpus):
    references, _, truth = corpus
    judged = pronouns.outcomes(references, references, truth)
    assert len(judged) > 100
    assert (judged.outcome == "right").all()
    judged = lexical_commitment.outcomes(references, references, truth)
    assert len(judged) > 100
    assert (judged.outcome == "kept").all()


def test_another_right_translation_is_never_blamed(corpus):
    """A second draw of synonyms takes other first words, keeps its promises, and changes no pronoun."""
    references, second, truth = corpus
    assert (pronouns.outcomes(second, references, truth).outcome == "right").all()
    judged = lexical_commitment.outcomes(second, references, truth)
    assert (judged.taken != judged.chosen)[judged.outcome == "kept"].sum() > 20
    assert (judged.outcome == "broken").sum() == 0
    assert (judged.outcome == "kept").mean() > 0.8


def test_no_wrong_pronoun_passes_for_right(corpus):
    references, _, truth = corpus
    draw = random.Random(0)
    damaged = []
    for reference, record in zip(references, truth, strict=True):
        words = list(reference)
        for pronoun in record["pronouns"]:
            words[pronoun["target"]] = draw.choice(pronoun["alternatives"])
        damaged.append(words)
    judged = pronouns.outcomes(damaged, references, truth)
    assert (judged.outcome == "right").sum() == 0
    assert (judged.outcome == "wrong").mean() > 0.9


def test_brackets_left_open_are_broken(corpus):
    references, _, truth = corpus
    for sentence, (reference, record) in enumerate(zip(references, truth, strict=True)):
        for number, made in enumerate(record["commitments"]):
            if made["alternatives"]:
                continue
            [closing] = made["forces"]
            hypothesis = [*reference[:closing], *reference[closing + 1 :]]
            judged = lexical_commitment.outcomes([hypothesis], [reference], [record]).iloc[number]
            assert judged.outcome == "broken", (sentence, reference)
