"""Lexical commitment: how often a translation chooses a first word and then omits the words it forces later.

"Trifft" forces "eine Entscheidung", "fasst" forces "einen Entschluss": either is right, a mixture is not. Works on
token lists and the truth records of the controlled corpus (`commitments`: target, chosen, alternatives, forces,
continuations).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyses.proportion_correct import check_lines, selection

Tokens = Sequence[str]
_COLUMNS = ["sentence", "target", "chosen", "taken", "position", "distance", "outcome", "missing", "rivals", "reason"]


@dataclass(frozen=True)
class _Commitment:
    """One commitment: the truth record, the words each choice forces, and the choice of the hypothesis.

    first_word: None if it is unknown, for the `reason`.
    """

    record: Mapping[str, Any]
    continuations: Mapping[str, Tokens]
    first_word: str | None
    reason: str

    @property
    def reference_words(self) -> list[str]:
        first_word = self.record["chosen"]
        return [first_word, *self.continuations[first_word]]

    @property
    def expected_words(self) -> list[str]:
        return [] if self.first_word is None else [self.first_word, *self.continuations[self.first_word]]

    @property
    def first_words(self) -> set[str]:
        return set(self.continuations)

    @property
    def words(self) -> set[str]:
        """Every word of any choice: first words and the words they force."""
        return {word for first, later in self.continuations.items() for word in (first, *later)}

    @property
    def distinguishing_words(self) -> list[str]:
        """The words forced by the first word, except those that every choice forces."""
        assert self.first_word is not None
        other_continuations = [later for first, later in self.continuations.items() if first != self.first_word]
        forced = dict.fromkeys(self.continuations[self.first_word])
        return [
            word
            for word in forced
            if not other_continuations or not all(word in words for words in other_continuations)
        ]

    @property
    def rival_words(self) -> list[str]:
        """The words forced by other choices only."""
        return sorted({word for words in self.continuations.values() for word in words} - set(self.expected_words))


def outcomes(
    hypotheses: Sequence[Tokens], references: Sequence[Tokens], truths: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """One row per commitment: the hypothesis's first word, and whether the words it forces follow.

    Columns: sentence (index), target (position in the reference), chosen (the reference's first word), taken (the
    hypothesis's first word, None if unknown), position (of `taken` in the hypothesis, NaN unless it occurs once),
    distance (words from the first to the last forced word, in the reference), outcome, missing (forced words that are
    absent), rivals (words of another choice that are present instead), reason.

    Words are counted, not located: a word is missing if it occurs less often than in the reference after the
    continuation of every choice is exchanged for that of the word taken. Outcomes:

    - kept: no distinguishing word is missing.
    - broken: a distinguishing word is missing, and a rival is present or there is no other choice.
    - undecidable, with a reason. "missing", "extra", "ambiguous": the first word is unknown
      (`proportion_correct.selection`); "ambiguous" also if a word is missing but another choice of the sentence has the
      same first words, or has the same words and an unknown first word, so that they may have been exchanged. "unknown
      continuation": the record does not say what the word taken forces. "absent": a forced word is missing without a
      rival, which may be a paraphrase or an omission.
    """
    check_lines(hypotheses, references, truths)
    rows = []
    for sentence, (hypothesis, reference, truth) in enumerate(zip(hypotheses, references, truths, strict=True)):
        commitments = [_commitment(hypothesis, reference, record) for record in truth["commitments"]]
        for commitment, verdict in zip(commitments, _verdicts(hypothesis, reference, commitments), strict=True):
            occurs_once = commitment.first_word is not None and hypothesis.count(commitment.first_word) == 1
            row = {
                "sentence": sentence,
                "target": commitment.record["target"],
                "chosen": commitment.record["chosen"],
                "taken": commitment.first_word,
                "position": hypothesis.index(commitment.first_word) if occurs_once else np.nan,
                "distance": max(commitment.record["forces"]) - commitment.record["target"],
            }
            rows.append({**row, **verdict})
    return pd.DataFrame(rows, columns=_COLUMNS)


def _commitment(hypothesis: Tokens, reference: Tokens, record: Mapping[str, Any]) -> _Commitment:
    first_word = record["chosen"]
    if record["target"] >= len(reference) or reference[record["target"]] != first_word:
        raise ValueError(
            f"A truth record commits to {first_word!r} at word {record['target']}, which its reference "
            f"{' '.join(reference)!r} does not have there: truth and references must come from the same corpus."
        )
    forced = {first_word: [reference[position] for position in record["forces"]]}
    continuations = {**record.get("continuations", {}), **forced}
    choice = selection(reference, hypothesis, first_word, record["alternatives"])
    if choice.word is not None and choice.word not in continuations:
        return _Commitment(record, continuations, None, "unknown continuation")
    return _Commitment(record, continuations, choice.word, choice.reason)


def _expected_counts(reference: Tokens, commitments: Sequence[_Commitment]) -> Counter[str]:
    """The expected count of each word, given the first words that are known."""
    expected = Counter(reference)
    for commitment in commitments:
        if commitment.first_word is not None:
            expected.subtract(commitment.reference_words)
            expected.update(commitment.expected_words)
    return expected


def _verdicts(hypothesis: Tokens, reference: Tokens, commitments: Sequence[_Commitment]) -> list[dict[str, Any]]:
    """The verdict on each commitment of a sentence; if it is not kept but depends on another one, it is ambiguous."""
    counts, expected = Counter(hypothesis), _expected_counts(reference, commitments)
    verdicts = [_verdict(commitment, counts, expected) for commitment in commitments]
    final_verdicts = []
    for commitment, verdict in zip(commitments, verdicts, strict=True):
        others = [other for other in commitments if other is not commitment]
        depends_on_another = any(
            other.first_words & commitment.first_words or (other.first_word is None and other.words & commitment.words)
            for other in others
        )
        is_final = commitment.first_word is None or verdict["outcome"] == "kept" or not depends_on_another
        final_verdicts.append(verdict if is_final else {**verdict, "outcome": "undecidable", "reason": "ambiguous"})
    return final_verdicts


def _verdict(commitment: _Commitment, counts: Counter[str], expected: Counter[str]) -> dict[str, Any]:
    verdict: dict[str, Any] = {"outcome": "undecidable", "missing": (), "rivals": (), "reason": commitment.reason}
    if commitment.first_word is None:
        return verdict
    missing = tuple(word for word in commitment.distinguishing_words if counts[word] < expected[word])
    rivals = tuple(word for word in commitment.rival_words if counts[word] > expected[word]) if missing else ()
    if not missing:
        return {**verdict, "outcome": "kept"}
    if rivals or len(commitment.continuations) == 1:
        return {**verdict, "outcome": "broken", "missing": missing, "rivals": rivals}
    return {**verdict, "missing": missing, "reason": "absent"}
