"""Every sentence of a test set with the outputs of all systems: scores, filters, order, and word differences.

Scores come from the statistics of `analyses.scores`, so none is extracted twice. Filters return row numbers, so texts
are not copied for a search.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyses.scores import Statistics

SENTENCE, WORDS = "sentence", "source words"
SOURCE, REFERENCE = "source", "reference"
DELTA = "Δ "  # begins the name of a difference to the baseline
# Scripts without spaces between words: each of their characters counts as a word, and so does punctuation.
_UNSPACED = "\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SINGLE = _UNSPACED + r".,;:!?()\"„“”«»…、。，；：？！（）「」《》"
_TOKEN = re.compile(rf"\s*(?:[{_SINGLE}]|[^\s{_SINGLE}]+)\s*|\s+")


@dataclass(frozen=True, eq=False)
class Sentences:
    """One row per sentence, in the order of the test set; the index is the sentence's number, from 0.

    texts: source, reference (if there is one), then the output of each system. values: scores of systems and numbers
    from annotations. labels: names of groups, "" for none.
    """

    texts: pd.DataFrame
    values: pd.DataFrame
    labels: pd.DataFrame
    systems: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


class Difference(NamedTuple):
    """A span of two texts: equal word for word, or present in only one of them (the other is then empty)."""

    equal: bool
    first: str
    second: str


def segment_scores(statistics: Statistics) -> np.ndarray:
    """Segment-level scores [segments], as sacreBLEU's `sentence_score` computes them.

    BLEU uses only the n-gram orders that a short segment has (effective order) and keeps the smoothing of its options
    ("exp" by default: Chen and Cherry 2014, method 3).
    """
    options = dict(statistics.options)
    if statistics.metric == "bleu":
        options["effective_order"] = True
    return replace(statistics, options=options).scores(statistics.values)


def sentence_table(
    sources: Sequence[str],
    references: Sequence[str] | None,
    outputs: Mapping[str, Sequence[str]],
    scores: Mapping[str, Mapping[str, np.ndarray]],
    baseline: str | None = None,
    annotations: pd.DataFrame | None = None,
) -> Sentences:
    """Build the table of all sentences and systems.

    scores: metric -> system -> score [segments]. annotations: further columns, one row per sentence; numbers become
    values, the rest labels. The values are `METRIC SYSTEM`, its difference to the baseline `Δ METRIC SYSTEM` (system
    minus baseline, in the metric's unit) and `length ratio SYSTEM` (words of output over words of reference; NaN for an
    empty reference). Raises ValueError if the numbers of lines differ.
    """
    columns: dict[str, Sequence[str]] = {SOURCE: sources}
    if references is not None:
        columns[REFERENCE] = references
    clash = set(outputs) & set(columns)
    if clash:
        raise ValueError(f"A system is called {min(clash)!r}, as a column of texts is: rename the system.")
    columns.update(outputs)
    for name, lines in columns.items():
        if len(lines) != len(sources):
            raise ValueError(f"{name} has {len(lines)} lines but there are {len(sources)} sources: one line each.")
    texts = pd.DataFrame({name: pd.Series(list(lines), dtype="str") for name, lines in columns.items()})
    values: dict[str, np.ndarray] = {WORDS: _word_counts(sources)}
    for metric, by_system in scores.items():
        values |= {f"{metric} {system}": scores_of_system for system, scores_of_system in by_system.items()}
        if baseline is not None and baseline in by_system:
            others = [system for system in by_system if system != baseline]
            values |= {f"{DELTA}{metric} {system}": by_system[system] - by_system[baseline] for system in others}
    if references is not None:
        expected = _word_counts(references).astype(float)
        expected[expected == 0] = np.nan
        values |= {f"length ratio {system}": _word_counts(lines) / expected for system, lines in outputs.items()}
    extra_columns = pd.DataFrame(index=texts.index) if annotations is None else annotations.set_axis(texts.index)
    numbers = extra_columns.select_dtypes("number")
    labels = extra_columns.drop(columns=numbers.columns).fillna("").astype("str")
    frame = pd.concat([pd.DataFrame(values, index=texts.index), numbers], axis="columns")
    return Sentences(texts, frame, labels, tuple(outputs))


def select(
    sentences: Sentences,
    contains: str = "",
    within: Collection[str] = (),
    ranges: Mapping[str, tuple[float, float]] | None = None,
    labels: Mapping[str, Collection[str]] | None = None,
    order: str = SENTENCE,
    descending: bool = False,
) -> np.ndarray:
    """The sorted numbers of the sentences that meet every condition; ties stay in the order of the test set.

    contains: a text, case ignored, in any of the texts `within` (default: all). ranges: value -> (low, high), ends
    included; a missing value is in no range. labels: label -> allowed values. order: the column to sort by (SENTENCE, a
    text, a value or a label); missing values come last. Raises ValueError for an unknown column.
    """
    keep = np.ones(len(sentences), dtype=bool)
    for name, (low, high) in (ranges or {}).items():
        keep &= _column(sentences.values, name).between(low, high).to_numpy()
    for name, allowed in (labels or {}).items():
        keep &= _column(sentences.labels, name).isin(list(allowed)).to_numpy()
    rows = np.flatnonzero(keep)
    if contains:
        unmatched = rows  # each text is searched only in sentences without a match so far
        for name in within or sentences.texts.columns:
            lines = _column(sentences.texts, name)
            candidates = lines if len(unmatched) == len(sentences) else lines.iloc[unmatched]
            unmatched = unmatched[~candidates.str.contains(contains, case=False, regex=False).to_numpy(dtype=bool)]
        rows = np.setdiff1d(rows, unmatched, assume_unique=True)
    if order == SENTENCE:
        return rows[::-1] if descending else rows
    frame = next((part for part in (sentences.values, sentences.labels) if order in part), sentences.texts)
    column = _column(frame, order).iloc[rows]
    if frame is sentences.labels:
        column = column.where(column != "")  # a label that is missing
    return column.sort_values(ascending=not descending, kind="stable", na_position="last").index.to_numpy()


def word_diff(first: str, second: str) -> list[Difference]:
    """Word-level differences of two texts; all first sides joined are the first text, likewise the second.

    White space belongs to the preceding word and is not compared. Each character of a script without spaces and each
    punctuation mark is a word. The longest common spans are matched (Ratcliff and Obershelp 1988).
    """
    first_tokens, second_tokens = _TOKEN.findall(first), _TOKEN.findall(second)
    matcher = difflib.SequenceMatcher(
        None, [token.strip() for token in first_tokens], [token.strip() for token in second_tokens], autojunk=False
    )
    return [
        Difference(kind == "equal", "".join(first_tokens[start:end]), "".join(second_tokens[other_start:other_end]))
        for whole, start, end, other_start, other_end in matcher.get_opcodes()
        for kind, start, end, other_start, other_end in _parted(whole, start, end, other_start, other_end)
    ]


def _parted(kind: str, start: int, end: int, other_start: int, other_end: int) -> list[tuple[str, int, int, int, int]]:
    """Split a replacement into a deletion and an insertion."""
    if kind != "replace":
        return [(kind, start, end, other_start, other_end)]
    return [("delete", start, end, other_start, other_start), ("insert", end, end, other_start, other_end)]


def _word_counts(lines: Sequence[str]) -> np.ndarray:
    return np.array([len(line.split()) for line in lines], dtype=np.int64)


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    if name not in frame:
        near = difflib.get_close_matches(name, list(frame.columns), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"There is no column {name!r}: choose one of {', '.join(frame.columns) or 'none'}.{hint}")
    return frame[name]
