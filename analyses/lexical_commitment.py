"""How often a translation takes a first word and then breaks what that word forces later.

"Trifft" forces "eine Entscheidung", "fasst" forces "einen Entschluss": either is right, a mixture is not. Works on
token lists and the truth records of the controlled corpus (`commitments`: target, chosen, alternatives, forces,
continuations). Does not know the generator, nor why a decoder chose as it did.
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
    """One commitment as the hypothesis took it: the words the reference spends on it, and those now due instead."""

    record: Mapping[str, Any]
    continuations: Mapping[str, Tokens]
    taken: str | None
    reason: str

    @property
    def own(self) -> list[str]:
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
        """Every word that any of the choices brings along."""
        return {word for first, later in self.continuations.items() for word in (first, *later)}

    @property
    def telling(self) -> list[str]:
        """The later words due that not every choice forces: what is common to all tells nothing."""
        assert self.taken is not None
        others = [later for first, later in self.continuations.items() if first != self.taken]
        later = dict.fromkeys(self.continuations[self.taken])
        return [word for word in later if not others or not all(word in words for words in others)]

    @property
    def rivals(self) -> list[str]:
        """The later words that only other choices force."""
        return sorted({w for words in self.continuations.values() for w in words} - set(self.due))


def outcomes(
    hypotheses: Sequence[Tokens], references: Sequence[Tokens], truths: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """One row a commitment: which first word was taken, and do the words that it forces follow.

    Columns: sentence (index), target (position in the reference), chosen (the reference's first word), taken (the
    hypothesis's, None if it cannot be told), position (of `taken` in the hypothesis, NaN unless it stands there once),
    distance (words from first to last forced word, in the reference), outcome, missing (forced words that are not
    there), rivals (words of another choice that are there instead), reason.

    Words are counted, not located: one is missing if it stands less often than in the reference with the continuation
    of every choice exchanged for that of the word taken. kept: nothing telling is missing. broken: something is, and
    a rival stands there, or there is no other choice. undecidable, by reason: "missing", "extra", "ambiguous": the
    first word cannot be told (`proportion_correct.selection`), or, for "ambiguous", something is missing but another
    choice of the sentence has the same first words, or the same words and cannot be told: they may have been exchanged.
    "unknown continuation": the record does not say what the word taken forces. "absent": a forced word is missing but
    no rival stands there, which may be another wording or an omission.
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
    found = selection(reference, hypothesis, chosen, record["alternatives"])
    if found.word is not None and found.word not in continuations:
        return _Reading(record, continuations, None, "unknown continuation")
    return _Reading(record, continuations, found.word, found.reason)


def _expected(reference: Tokens, readings: Sequence[_Reading]) -> Counter[str]:
    """How often each word is due, after every choice that could be told."""
    expected = Counter(reference)
    for reading in readings:
        if reading.taken is not None:
            expected.subtract(reading.own)
            expected.update(reading.due)
    return expected


def _verdicts(hypothesis: Tokens, reference: Tokens, readings: Sequence[_Reading]) -> list[dict[str, Any]]:
    """The verdict on each commitment of a sentence; one not kept that hangs on another is ambiguous."""
    written, expected = Counter(hypothesis), _expected(reference, readings)
    verdicts = [_verdict(reading, written, expected) for reading in readings]
    settled = []
    for reading, verdict in zip(readings, verdicts, strict=True):
        others = [other for other in readings if other is not reading]
        hangs = any(
            other.firsts & reading.firsts or (other.taken is None and other.words & reading.words) for other in others
        )
        free = reading.taken is None or verdict["outcome"] == "kept" or not hangs
        settled.append(verdict if free else {**verdict, "outcome": "undecidable", "reason": "ambiguous"})
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
