"""PAST and FUTURE against the truth: which source words are translated at a step is known where the links are.

At step t a word is PAST if all its counterparts were written before, FUTURE if all are still to come; in between it is
the PRESENT, and of neither (Zheng 2019, Figure 1, counts it as FUTURE). Scores of systems, and rules that need no
model, are held against that: how well they order (area under the ROC curve), and whether they are probabilities
(calibration). A cell is one source word at one step. Intervals are bootstrap intervals over sentences. Knows arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analyses.alignment import Link
from analyses.past_future import REDUNDANT
from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

FAR = 3  # places: a word further from all its counterparts than this is moved
WORDS = {"all": "all words", "moved": f"moved by more than {FAR} places"}
Present = Literal["out", "future"]


def cells(links: Iterable[Link], words: int, steps: int, present: Present = "out") -> pd.DataFrame:
    """The cells of a sentence whose state is known: step, word (from 0), past, moved (both bool).

    links: (source, target) from 0. Words without counterpart are in no cell. present: "out" leaves out the steps from
    the first counterpart to the last, "future" takes them for FUTURE, as the word is still to be finished.
    """
    found = sorted(links)
    rows = []
    for word in sorted({i for i, _ in found}):
        ours = [j for i, j in found if i == word]
        first, last = min(ours), max(ours)
        moved = min(abs(word - j) for j in ours) > FAR
        rows += [
            (step, word, step > last, moved)
            for step in range(steps)
            if step < first or step > last or present == "future"
        ]
    table = pd.DataFrame(rows, columns=["step", "word", "past", "moved"])
    return table.astype({"step": int, "word": int, "past": bool, "moved": bool})


def by_position(steps: int, words: int) -> np.ndarray:
    """The rule i / I < t / T as a score, t / T - i / I, both counted from 1: [T, I]."""
    return np.arange(1, steps + 1)[:, None] / steps - np.arange(1, words + 1)[None, :] / words


def cumulated(attention: np.ndarray) -> np.ndarray:
    """What a word was attended to before each step: attention[..., T, I] -> the sum over earlier steps, [..., T, I]."""
    values = np.asarray(attention, dtype=np.float64)
    return np.cumsum(values, axis=-2) - values


def area_under_curve(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None) -> float:
    """How probable a positive is to have a higher score than a negative, ties counting half; NaN without one of both.

    scores [n], positive [n] bool, weights [n] (1 each). By rank statistic, in n log n.
    """
    chosen = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    return _Ranked(np.asarray(scores), np.asarray(positive, dtype=bool)).area(chosen)


class _Ranked:
    """Scores as dense ranks, those of positives and of negatives apart: areas of many weightings of the same cells."""

    def __init__(self, scores: np.ndarray, positive: np.ndarray) -> None:
        values, ranks = np.unique(scores.astype(np.float64), return_inverse=True)
        self._places = np.flatnonzero(positive), np.flatnonzero(~positive)
        self._ranks = tuple(ranks[places] for places in self._places)
        self._size = len(values)

    def area(self, weights: np.ndarray) -> float:
        """The share of pairs that are in order, ties counting half; weights [n]."""
        of_positive, of_negative = (
            np.bincount(ranks, weights[places], self._size)
            for ranks, places in zip(self._ranks, self._places, strict=True)
        )
        pairs = of_positive.sum() * of_negative.sum()
        below = np.cumsum(of_negative) - of_negative / 2
        return float(of_positive @ below / pairs) if pairs else float("nan")


@dataclass(frozen=True)
class Areas:
    """Areas of several scores on the same cells: system, words ("all", "moved"), auc, low, high, n (cells); and the
    area in each resample by (system, words), from which differences are made."""

    table: pd.DataFrame
    drawn: Mapping[tuple[str, str], np.ndarray]

    def difference(self, system: str, other: str, words: str = "all") -> tuple[float, float, float]:
        """The area of one minus that of another with its 95 % interval, paired over the same resamples."""
        found = self.table.set_index(["system", "words"])["auc"]
        apart = self.drawn[system, words] - self.drawn[other, words]
        delta = float(found[system, words] - found[other, words])
        return delta, *percentile_interval(apart)


def areas(
    found: pd.DataFrame, scores: Mapping[str, np.ndarray], samples: int = 1000, seed: int = DEFAULT_SEED
) -> Areas:
    """Areas under the curve of each system's scores [n] for the cells found[n]: sentence, past, moved.

    A higher score says PAST. Sentences are resampled, all systems alike.
    """
    numbers, sentences = np.unique(found["sentence"].to_numpy(), return_inverse=True)
    generator = np.random.default_rng(seed)
    size = len(numbers)
    counts = [np.bincount(generator.integers(size, size=size), minlength=size).astype(float) for _ in range(samples)]
    rows, drawn = [], {}
    for words in WORDS:
        kept = found["moved"].to_numpy() if words == "moved" else np.ones(len(found), dtype=bool)
        past, own = found["past"].to_numpy()[kept], sentences[kept]
        for system, values in scores.items():
            ranked = _Ranked(np.asarray(values)[kept], past)
            value, resampled = ranked.area(np.ones(len(past))), np.array([ranked.area(one[own]) for one in counts])
            drawn[system, words] = resampled
            rows.append((system, words, value, *percentile_interval(resampled), len(past)))
    table = pd.DataFrame(rows, columns=["system", "words", "auc", "low", "high", "n"])
    return Areas(table, drawn)


def calibration(
    found: pd.DataFrame, probabilities: np.ndarray, bins: int = 10, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """What share of the cells is PAST where a system says so with a probability: bin, said (mean probability), share,
    low, high, n (cells); bins of equal width from 0 to 1, empty ones left out.

    found: sentence, past of each cell; probabilities [n], clipped to 0 to 1.
    """
    values = np.clip(np.asarray(probabilities, dtype=np.float64), 0, 1)
    places = np.minimum((values * bins).astype(int), bins - 1)
    numbers, sentences = np.unique(found["sentence"].to_numpy(), return_inverse=True)
    sums = np.zeros((len(numbers), 3, bins))
    for kind, column in enumerate((np.ones_like(values), values, found["past"].to_numpy(dtype=np.float64))):
        np.add.at(sums[:, kind], (sentences, places), column)
    total = sums.sum(0)
    drawn = resampled_sums(sums.reshape(len(numbers), -1), samples, seed).reshape(-1, 3, bins)
    rows = []
    for place in np.flatnonzero(total[0]):
        there = drawn[drawn[:, 0, place] > 0, :, place]
        low, high = percentile_interval(there[:, 2] / there[:, 0])
        count = total[0, place]
        rows.append((int(place) + 1, total[1, place] / count, total[2, place] / count, low, high, int(count)))
    return pd.DataFrame(rows, columns=["bin", "said", "share", "low", "high", "n"])


def calibration_error(table: pd.DataFrame) -> float:
    """The mean distance of what is said and what is, weighted by the cells of each bin (`calibration`)."""
    return float(((table["said"] - table["share"]).abs() * table["n"]).sum() / table["n"].sum())


def redundancy(
    masses: Sequence[np.ndarray],
    without: Sequence[Iterable[int]],
    words: Sequence[int],
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """REDUNDANT mass, a mean over steps and words, of words without counterpart and of the others: kind ("without",
    "with"), mass, low, high, n (words), auc (of its mean over steps as a sign of having none, in both rows).

    masses[T, I, 3] of each sentence; without: its words that have no counterpart; words: how many count.
    """
    of_words = [
        np.asarray(mass[:, :count, REDUNDANT], float).mean(0) for mass, count in zip(masses, words, strict=True)
    ]
    lacks = [np.isin(np.arange(count), list(own)) for own, count in zip(without, words, strict=True)]
    sums = np.array(
        [[own[kind].sum() for kind in (lack, ~lack)] + [lack.sum(), (~lack).sum()]
         for own, lack in zip(of_words, lacks, strict=True)]
    )  # fmt: skip
    drawn, total = resampled_sums(sums, samples, seed), sums.sum(0)
    auc = area_under_curve(np.concatenate(of_words), np.concatenate(lacks))
    rows = []
    for place, kind in enumerate(("without", "with")):
        count = total[place + 2]
        there = drawn[drawn[:, place + 2] > 0]
        mean = total[place] / count if count else float("nan")
        rows.append((kind, mean, *percentile_interval(there[:, place] / there[:, place + 2]), int(count), auc))
    return pd.DataFrame(rows, columns=["kind", "mass", "low", "high", "n", "auc"])
