"""Word accuracy by frequency, and n-grams that one system matches more often than another.

Matches of an n-gram are clipped to its count in the reference of the segment (compare-mt: Neubig et al. 2019,
"compare-mt: A Tool for Holistic Comparison of Language Generation Systems"). Words are separated by spaces; see
`analyses.tokenization`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

# The inner edges of compare-mt's buckets: a bucket holds the frequencies from its low edge to below its high edge.
FREQUENCIES = (1, 2, 3, 4, 5, 10, 100, 1000)
_SMOOTHING = 1.0  # compare-mt's alpha of the score by which n-grams are ranked


@dataclass(frozen=True, eq=False)
class _Coded:
    """Several texts of a test set as numbers: for each token its side (text), its segment and its word's code."""

    side: np.ndarray
    segment: np.ndarray
    code: np.ndarray
    words: np.ndarray  # the word of each code
    segments: int
    sides: int


def frequencies(lines: Sequence[str]) -> dict[str, int]:
    """The count of each word of a text."""
    words = pd.Series([word for line in lines for word in line.split()], dtype="object")
    counts = words.value_counts()
    return dict(zip(counts.index.tolist(), counts.tolist(), strict=True))


def rarest_word_frequency(lines: Sequence[str], counts: Mapping[str, int]) -> np.ndarray:
    """The frequency of the rarest word of each line [lines]; 0 for an unknown word and for an empty line."""
    return np.array([min((counts.get(word, 0) for word in line.split()), default=0) for line in lines], dtype=np.int64)


def unseen(lines: Sequence[str], counts: Mapping[str, int]) -> float:
    """The share of the tokens of a text without a count; NaN for an empty text."""
    is_unseen = [counts.get(word, 0) == 0 for line in lines for word in line.split()]
    return float(np.mean(is_unseen)) if is_unseen else math.nan


def bucket_labels(edges: Sequence[int] = FREQUENCIES) -> list[str]:
    """The names of the buckets of whole frequencies: `0`, `1`, `5–9`, …, `≥1000`."""
    bounds = zip((0, *edges), edges, strict=False)
    inner = [f"{low}" if high == low + 1 else f"{low}–{high - 1}" for low, high in bounds]
    return [*inner, f"≥{edges[-1]}"]


def matches(
    outputs: Sequence[str], references: Sequence[str], counts: Mapping[str, int], edges: Sequence[int] = FREQUENCIES
) -> np.ndarray:
    """Word counts [segments, buckets, 3] by frequency: matched, in the reference, in the output.

    A word without a count has frequency 0. Raises ValueError for unequal line counts and edges that do not ascend.
    """
    if not len(edges) or edges[0] < 1 or (np.diff(edges) <= 0).any():
        raise ValueError(f"Frequency edges must be whole numbers that ascend from 1 or more, got {list(edges)}.")
    coded = _coded(references, outputs)
    frequency = np.array([counts.get(word, 0) for word in coded.words], dtype=np.int64)
    bucket = np.searchsorted(np.asarray(edges), frequency, side="right")
    keys, amounts = _counted(coded, coded.code, len(coded.words))
    buckets = len(edges) + 1
    table = [
        np.bincount(
            pairs // len(coded.words) * buckets + bucket[pairs % len(coded.words)],
            times,
            coded.segments * buckets,
        ).reshape(coded.segments, buckets)
        for pairs, times in (_matched(keys, amounts, 1), (keys[0], amounts[0]), (keys[1], amounts[1]))
    ]
    return np.stack(table, axis=-1)


def f_measure(sums: np.ndarray) -> np.ndarray:
    """The harmonic mean of precision and recall [...] of summed matches [..., 3].

    0 without matches, NaN if neither reference nor output has a word.
    """
    matched, expected, written = np.moveaxis(np.asarray(sums, dtype=float), -1, 0)
    with np.errstate(invalid="ignore"):
        return 2 * matched / (expected + written)


def by_frequency(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    counts: Mapping[str, int],
    edges: Sequence[int] = FREQUENCIES,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """F-measure of target words by frequency bucket, with the 95 % interval of a bootstrap over segments.

    Columns: system, bucket, n (reference words of the bucket), written (words of the output), matched, precision,
    recall, score, low, high; fractions of 1. All systems share their resamples. A bucket without reference words is
    left out.
    """
    rows = []
    labels = bucket_labels(edges)
    for system, outputs in systems.items():
        segment_matches = matches(outputs, references, counts, edges)
        totals = segment_matches.sum(axis=0)
        resampled = resampled_sums(segment_matches.reshape(len(segment_matches), -1), samples, seed).reshape(
            -1, *totals.shape
        )
        for bucket, (matched, expected, written) in enumerate(totals):
            if expected:
                precision = matched / written if written else np.nan
                score = float(f_measure(totals[bucket]))
                scores = f_measure(resampled[:, bucket])
                band = percentile_interval(scores)
                totals_row = (int(expected), int(written), int(matched))
                rows.append((system, labels[bucket], *totals_row, precision, matched / expected, score, *band))
    columns = ["system", "bucket", "n", "written", "matched", "precision", "recall", "score", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def ngram_differences(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    orders: Sequence[int] = (1, 2, 3, 4),
    examples: int = 3,
) -> pd.DataFrame:
    """The n-grams of the references that one of two systems matches more often than the other.

    Columns: ngram, order, reference (count in the references), first and second (matches of each system), difference,
    ratio, examples (segments in which the system with more matches has more of them). ratio is compare-mt's
    (first + 1) / (first + second + 2), the sort key: n-grams of the first system come first, those of the second last.
    """
    coded = _coded(references, first, second)
    parts = []
    code, starts = coded.code, np.arange(len(coded.code))
    for order in range(1, max(orders) + 1):
        if order > 1:
            code, starts = _longer(coded, code, starts, order)
        if order in orders and len(starts):
            parts.append(_ngram_rows(coded, code, starts, order, examples))
    columns = ["ngram", "order", "reference", "first", "second", "difference", "ratio", "examples"]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return table[columns].sort_values(["ratio", "order"], ascending=[False, False], kind="stable", ignore_index=True)


def _coded(*sides: Sequence[str]) -> _Coded:
    if len({len(side) for side in sides}) > 1:
        raise ValueError(f"The sides have {', '.join(str(len(side)) for side in sides)} lines; they must be as many.")
    split = [line.split() for side in sides for line in side]
    lengths = np.array([len(words) for words in split], dtype=np.int64)
    row = np.repeat(np.arange(len(split)), lengths)
    code, words = pd.factorize(np.array([word for line in split for word in line], dtype=object))
    segments = len(sides[0])
    side, segment = np.divmod(row, max(segments, 1))
    return _Coded(side, segment, code.astype(np.int64), words, segments, len(sides))


def _longer(coded: _Coded, code: np.ndarray, starts: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes and first positions of all n-grams, each built from the n-gram one word shorter and its last word."""
    last = starts + order - 1
    inside = last < len(coded.code)
    starts, code, last = starts[inside], code[inside], last[inside]
    row = coded.side * coded.segments + coded.segment
    inside = row[starts] == row[last]
    starts, code, last = starts[inside], code[inside], last[inside]
    pairs = code * len(coded.words) + coded.code[last]
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64), starts


def _counted(
    coded: _Coded, code: np.ndarray, codes: int, starts: np.ndarray | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each side its (segment, n-gram) pairs as `segment * codes + code`, ascending, and their counts."""
    positions = slice(None) if starts is None else starts
    side, key = coded.side[positions], coded.segment[positions] * codes + code
    counts_by_side = [np.unique(key[side == number], return_counts=True) for number in range(coded.sides)]
    return [keys for keys, _ in counts_by_side], [amounts for _, amounts in counts_by_side]


def _matched(keys: list[np.ndarray], amounts: list[np.ndarray], side: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that a side shares with the reference (side 0), and the clipped count of each."""
    shared, expected, written = np.intersect1d(keys[0], keys[side], assume_unique=True, return_indices=True)
    return shared, np.minimum(amounts[0][expected], amounts[side][written])


def _ngram_rows(coded: _Coded, code: np.ndarray, starts: np.ndarray, order: int, examples: int) -> pd.DataFrame:
    codes = int(code.max()) + 1
    keys, amounts = _counted(coded, code, codes, starts)
    expected = np.bincount(keys[0] % codes, amounts[0], codes).astype(np.int64)
    of_first, of_second = (_matched(keys, amounts, side) for side in (1, 2))
    first, second = (
        np.bincount(pairs % codes, times, codes).astype(np.int64) for pairs, times in (of_first, of_second)
    )
    differing = np.flatnonzero(first != second)
    first_at = dict(zip(code[::-1].tolist(), starts[::-1].tolist(), strict=True))
    ahead = _ahead(of_first, of_second, codes, np.sign(first - second), examples)
    return pd.DataFrame(
        {
            "ngram": [
                " ".join(coded.words[coded.code[first_at[ngram] : first_at[ngram] + order]])
                for ngram in differing.tolist()
            ],
            "order": order,
            "reference": expected[differing],
            "first": first[differing],
            "second": second[differing],
            "difference": (first - second)[differing],
            "ratio": (first + _SMOOTHING)[differing] / (first + second + 2 * _SMOOTHING)[differing],
            "examples": [ahead.get(ngram, ()) for ngram in differing.tolist()],
        }
    )


def _ahead(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    codes: int,
    sign: np.ndarray,
    examples: int,
) -> dict[int, tuple[int, ...]]:
    """n-gram -> the first segments in which the system with more matches overall has more of them."""
    pairs = np.concatenate([first[0], second[0]])
    more = np.concatenate([first[1], -second[1]])
    pairs, pair_number = np.unique(pairs, return_inverse=True)
    more = np.bincount(pair_number, more, len(pairs))
    pairs = pairs[more * sign[pairs % codes] > 0]
    table = pd.DataFrame({"code": pairs % codes, "segment": pairs // codes}).sort_values(["code", "segment"])
    examples_table = table.groupby("code").head(examples)
    segments: dict[int, list[int]] = {}
    for code, segment in zip(examples_table["code"].tolist(), examples_table["segment"].tolist(), strict=True):
        segments.setdefault(code, []).append(segment)
    return {code: tuple(numbers) for code, numbers in segments.items()}
