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
class _Reading:
    """One commitment with the hypothesis's first word: the words of the reference, and the words now due instead."""

    record: Mapping[str, Any]
    continuations: Mapping[str, Tokens]
    taken: str | None
    reason: str

    @property
    def reference_words(self) -> list[str]:
        chosen = self.record["chosen"]
        return [chosen, *self.continuations[chosen]]

    @property
    def due(self) -> list[str]:
        return [] if self.taken is None else [self.taken, *self.continuations[self.taken]]

    @property
    def firsts(self) -> set[str]:
        return set(self.continuations)

    @property
    def words(self) -> set[str]:
        """Every word of any choice: first words and the words they force."""
        return {word for first, later in self.continuations.items() for word in (first, *later)}

    @property
    def telling(self) -> list[str]:
        """The later words due, without those that every choice forces, as they distinguish nothing."""
        assert self.taken is not None
        others = [later for first, later in self.continuations.items() if first != self.taken]
        later = dict.fromkeys(self.continuations[self.taken])
        return [word for word in later if not others or not all(word in words for words in others)]

    @property
    def rivals(self) -> list[str]:
        """The later words forced by other choices only."""
        return sorted({w for words in self.continuations.values() for w in words} - set(self.due))


def outcomes(
    hypotheses: Sequence[Tokens], references: Sequence[Tokens], truths: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """One row per commitment: the first word chosen, and whether the words it forces follow.

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
        readings = [_read(hypothesis, reference, record) for record in truth["commitments"]]
        for reading, verdict in zip(readings, _verdicts(hypothesis, reference, readings), strict=True):
            first = reading.record["target"]
            once = reading.taken is not None and hypothesis.count(reading.taken) == 1
            about = {
                "sentence": sentence,
                "target": first,
                "chosen": reading.record["chosen"],
                "taken": reading.taken,
                "position": hypothesis.index(reading.taken) if once else np.nan,
                "distance": max(reading.record["forces"]) - first,
            }
            rows.append({**about, **verdict})
    return pd.DataFrame(rows, columns=_COLUMNS)


def _read(hypothesis: Tokens, reference: Tokens, record: Mapping[str, Any]) -> _Reading:
    chosen = record["chosen"]
    if record["target"] >= len(reference) or reference[record["target"]] != chosen:
        raise ValueError(
            f"A truth record commits to {chosen!r} at word {record['target']}, which its reference "
            f"{' '.join(reference)!r} does not have there: truth and references must come from the same corpus."
        )
    forced = {chosen: [reference[position] for position in record["forces"]]}
    continuations = {**record.get("continuations", {}), **forced}
    choice = selection(reference, hypothesis, chosen, record["alternatives"])
    if choice.word is not None and choice.word not in continuations:
        return _Reading(record, continuations, None, "unknown continuation")
    return _Reading(record, continuations, choice.word, choice.reason)


def _expected(reference: Tokens, readings: Sequence[_Reading]) -> Counter[str]:
    """The expected count of each word, given the first words that are known."""
    expected = Counter(reference)
    for reading in readings:
        if reading.taken is not None:
            expected.subtract(reading.reference_words)
            expected.update(reading.due)
    return expected


def _verdicts(hypothesis: Tokens, reference: Tokens, readings: Sequence[_Reading]) -> list[dict[str, Any]]:
    """The verdict on each commitment of a sentence; one not kept that depends on another is ambiguous."""
    written, expected = Counter(hypothesis), _expected(reference, readings)
    verdicts = [_verdict(reading, written, expected) for reading in readings]
    settled = []
    for reading, verdict in zip(readings, verdicts, strict=True):
        others = [other for other in readings if other is not reading]
        depends_on_another = any(
            other.firsts & reading.firsts or (other.taken is None and other.words & reading.words) for other in others
        )
        is_final = reading.taken is None or verdict["outcome"] == "kept" or not depends_on_another
        settled.append(verdict if is_final else {**verdict, "outcome": "undecidable", "reason": "ambiguous"})
    return settled


def _verdict(reading: _Reading, written: Counter[str], expected: Counter[str]) -> dict[str, Any]:
    verdict: dict[str, Any] = {"outcome": "undecidable", "missing": (), "rivals": (), "reason": reading.reason}
    if reading.taken is None:
        return verdict
    missing = tuple(word for word in reading.telling if written[word] < expected[word])
    rivals = tuple(word for word in reading.rivals if written[word] > expected[word]) if missing else ()
    if not missing:
        return {**verdict, "outcome": "kept"}
    if rivals or len(reading.continuations) == 1:
        return {**verdict, "outcome": "broken", "missing": missing, "rivals": rivals}
    return {**verdict, "missing": missing, "reason": "absent"}
