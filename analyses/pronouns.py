"""Pronoun accuracy: how often "it" becomes the right pronoun, by the distance of its antecedent.

Works on token lists and the truth records of the controlled corpus (`pronouns`: target position in the reference,
antecedent, gender, alternatives).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analyses.proportion_correct import check_lines, selection

Tokens = Sequence[str]
_OUTCOME_COLUMNS = ["sentence", "target", "distance", "gender", "needs_order", "right", "taken", "outcome", "reason"]


def outcomes(
    hypotheses: Sequence[Tokens], references: Sequence[Tokens], truths: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """One row per pronoun: does the hypothesis have the right form or one of its alternatives.

    Columns: sentence (index), target (position in the reference), distance (sentences back to the antecedent), gender,
    needs_order, right (form), taken (form or None), outcome ("right", "wrong", "undecidable"), reason (of the last).
    Decided by counting the forms on both sides: see `analyses.proportion_correct.selection` for what is undecidable.
    """
    check_lines(hypotheses, references, truths)
    rows = []
    for sentence, (hypothesis, reference, truth) in enumerate(zip(hypotheses, references, truths, strict=True)):
        for pronoun in truth["pronouns"]:
            right = _right_form(reference, pronoun, sentence)
            choice = selection(reference, hypothesis, right, pronoun["alternatives"])
            outcome = "undecidable" if choice.word is None else "right" if choice.word == right else "wrong"
            rows.append((*_about(sentence, pronoun, truth), right, choice.word, outcome, choice.reason))
    return pd.DataFrame(rows, columns=_OUTCOME_COLUMNS)


def variants(references: Sequence[Tokens], truths: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The reference with each possible form of a pronoun, to be scored in contrastive evaluation.

    Columns: sentence, target, distance, gender, needs_order, form, correct (bool), tokens (all words, a tuple).
    """
    check_lines(references, references, truths)
    rows = []
    for sentence, (reference, truth) in enumerate(zip(references, truths, strict=True)):
        for pronoun in truth["pronouns"]:
            position, right = pronoun["target"], _right_form(reference, pronoun, sentence)
            for form in (right, *pronoun["alternatives"]):
                tokens = (*reference[:position], form, *reference[position + 1 :])
                rows.append((*_about(sentence, pronoun, truth), form, form == right, tokens))
    return pd.DataFrame(rows, columns=[*_OUTCOME_COLUMNS[:5], "form", "correct", "tokens"])


def _about(sentence: int, pronoun: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[Any, ...]:
    distance = -pronoun["antecedent"]["sentence"]
    return sentence, pronoun["target"], distance, pronoun["gender"], "needs_order" in truth.get("phenomena", ())


def _right_form(reference: Tokens, pronoun: Mapping[str, Any], sentence: int) -> str:
    position = pronoun["target"]
    if position >= len(reference) or reference[position] in pronoun["alternatives"]:
        raise ValueError(
            f"Truth record {sentence} has a pronoun at word {position} that its reference of {len(reference)} words "
            "does not have there: truth and references must come from the same corpus, split at blanks only."
        )
    return reference[position]
