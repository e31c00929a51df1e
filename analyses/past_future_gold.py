"""PAST and FUTURE evaluated against gold links, which give the source words translated at each step.

At step t a word is PAST if all its counterparts were generated before, FUTURE if all are still to come; in between it
is PRESENT, which is neither (Zheng 2019, Figure 1, counts it as FUTURE). Scores of systems and of model-free rules are
evaluated by the area under the ROC curve and by calibration. A cell is one source word at one step. Intervals
are bootstrap intervals over sentences. Works on arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analyses.alignment import Link
from analyses.past_future import REDUNDANT
from analyses.significance import DEFAULT_SEED, percentile_interval, ratio_intervals

FAR = 3  # positions: a word further than this from all its counterparts is moved
WORDS = {"all": "all words", "moved": f"moved by more than {FAR} places"}
Present = Literal["out", "future"]


def cells(links: Iterable[Link], words: int, steps: int, present: Present = "out") -> pd.DataFrame:
    """The cells of a sentence with a known state: step, word (from 0), past, moved (both bool).

    links: (source, target) from 0. Words without counterpart have no cells. present: "out" leaves out the steps from
    the first counterpart to the last, "future" counts them as FUTURE, as the word is not finished.
    """
    sorted_links = sorted(links)
    rows = []
    for word in sorted({i for i, _ in sorted_links}):
        targets = [j for i, j in sorted_links if i == word]
        first, last = min(targets), max(targets)
        moved = min(abs(word - j) for j in targets) > FAR
        rows += [
            (step, word, step > last, moved)
            for step in range(steps)
            if step < first or step > last or present == "future"
        ]
    table = pd.DataFrame(rows, columns=["step", "word", "past", "moved"])
    return table.astype({"step": int, "word": int, "past": bool, "moved": bool})


def misjudged(shares: np.ndarray, past: np.ndarray) -> np.ndarray:
    """Cells whose share of PAST [n] says the opposite of past [n]: below one half where True, above where False."""
    return np.where(past, shares < 0.5, shares > 0.5)


def position_scores(steps: int, words: int) -> np.ndarray:
    """The rule i / I < t / T as a score, t / T - i / I, both counted from 1: [T, I]."""
    return np.arange(1, steps + 1)[:, None] / steps - np.arange(1, words + 1)[None, :] / words


def cumulative_attention(attention: np.ndarray) -> np.ndarray:
    """Cumulative attention to each word before each step: attention[..., T, I] -> [..., T, I]."""
    values = np.asarray(attention, dtype=np.float64)
    return np.cumsum(values, axis=-2) - values


def area_under_curve(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Area under the ROC curve: P(a positive scores above a negative), ties count half; NaN without either class.

    scores [n], positive [n] bool, weights [n] (1 each). By rank statistic, in n log n.
    """
    cell_weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    return _RankedCells(np.asarray(scores), np.asarray(positive, dtype=bool)).area(cell_weights)


class _RankedCells:
    """Dense ranks of positives and negatives, to compute the area for many weightings of the same cells."""

    def __init__(self, scores: np.ndarray, positive: np.ndarray) -> None:
        values, ranks = np.unique(scores.astype(np.float64), return_inverse=True)
        self._positions = np.flatnonzero(positive), np.flatnonzero(~positive)
        self._ranks = tuple(ranks[positions] for positions in self._positions)
        self._size = len(values)

    def area(self, weights: np.ndarray) -> float:
        """The share of correctly ordered pairs, ties count half; weights [n]."""
        positive_weights, negative_weights = (
            np.bincount(ranks, weights[positions], self._size)
            for ranks, positions in zip(self._ranks, self._positions, strict=True)
        )
        pairs = positive_weights.sum() * negative_weights.sum()
        weight_below = np.cumsum(negative_weights) - negative_weights / 2
        return float(positive_weights @ weight_below / pairs) if pairs else float("nan")


@dataclass(frozen=True)
class Areas:
    """Areas under the ROC curve of several scores on the same cells.

    table: system, words ("all", "moved"), auc, low, high, n (cells). resampled: the areas in all resamples by (system,
    words).
    """

    table: pd.DataFrame
    resampled: Mapping[tuple[str, str], np.ndarray]

    def difference(self, system: str, other: str, words: str = "all") -> tuple[float, float, float]:
        """The difference of two systems' areas with its 95 % interval, paired over the same resamples."""
        auc = self.table.set_index(["system", "words"])["auc"]
        differences = self.resampled[system, words] - self.resampled[other, words]
        delta = float(auc[system, words] - auc[other, words])
        return delta, *percentile_interval(differences)


def areas(
    cell_table: pd.DataFrame, scores: Mapping[str, np.ndarray], samples: int = 1000, seed: int = DEFAULT_SEED
) -> Areas:
    """Areas under the ROC curve of each system's scores [n] for the cells cell_table[n]: sentence, past, moved.

    A higher score says PAST. Sentences are resampled, all systems on the same resamples.
    """
    numbers, sentences = np.unique(cell_table["sentence"].to_numpy(), return_inverse=True)
    generator = np.random.default_rng(seed)
    size = len(numbers)
    counts = [np.bincount(generator.integers(size, size=size), minlength=size).astype(float) for _ in range(samples)]
    rows, resampled = [], {}
    for words in WORDS:
        selected = cell_table["moved"].to_numpy() if words == "moved" else np.ones(len(cell_table), dtype=bool)
        past, sentence_of_cell = cell_table["past"].to_numpy()[selected], sentences[selected]
        for system, values in scores.items():
            ranked = _RankedCells(np.asarray(values)[selected], past)
            area = ranked.area(np.ones(len(past)))
            resampled[system, words] = np.array([ranked.area(weights[sentence_of_cell]) for weights in counts])
            rows.append((system, words, area, *percentile_interval(resampled[system, words]), len(past)))
    table = pd.DataFrame(rows, columns=["system", "words", "auc", "low", "high", "n"])
    return Areas(table, resampled)


def calibration(
    cell_table: pd.DataFrame, probabilities: np.ndarray, bins: int = 10, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Reliability table of predicted probabilities of PAST: the share of PAST cells by predicted probability.

    Columns: bin, predicted (mean probability), share, low, high, n (cells); bins of equal width from 0 to 1, empty bins
    left out. cell_table: sentence, past of each cell; probabilities [n], clipped to 0 to 1.
    """
    values = np.clip(np.asarray(probabilities, dtype=np.float64), 0, 1)
    bin_numbers = np.minimum((values * bins).astype(int), bins - 1)
    numbers, sentences = np.unique(cell_table["sentence"].to_numpy(), return_inverse=True)
    sums = np.zeros((len(numbers), 3, bins))
    for row, column in enumerate((np.ones_like(values), values, cell_table["past"].to_numpy(dtype=np.float64))):
        np.add.at(sums[:, row], (sentences, bin_numbers), column)
    total = sums.sum(0)
    intervals = ratio_intervals(sums[:, 2], sums[:, 0], samples, seed)
    rows = []
    for bin_index in np.flatnonzero(total[0]):
        low, high = intervals[bin_index]
        count = total[0, bin_index]
        rows.append(
            (int(bin_index) + 1, total[1, bin_index] / count, total[2, bin_index] / count, low, high, int(count))
        )
    return pd.DataFrame(rows, columns=["bin", "predicted", "share", "low", "high", "n"])


def calibration_error(table: pd.DataFrame) -> float:
    """Expected calibration error: the mean of |predicted - share| over the bins of `calibration`, weighted by cells."""
    return float(((table["predicted"] - table["share"]).abs() * table["n"]).sum() / table["n"].sum())


def redundancy(
    masses: Sequence[np.ndarray],
    unlinked: Sequence[Iterable[int]],
    words: Sequence[int],
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """Mean REDUNDANT mass (over steps and words) of words without and with a counterpart.

    Columns: kind ("without", "with"), mass, low, high, n (words), auc (of the mean over steps as a detector of words
    without counterpart, the same in both rows). masses[T, I, 3] of each sentence; unlinked: its words without
    counterpart; words: the number of its words, without </s>.
    """
    word_masses = [
        np.asarray(mass[:, :count, REDUNDANT], float).mean(0) for mass, count in zip(masses, words, strict=True)
    ]
    masks = [np.isin(np.arange(count), list(positions)) for positions, count in zip(unlinked, words, strict=True)]
    sums = np.array(
        [[mass[selected].sum() for selected in (mask, ~mask)] + [mask.sum(), (~mask).sum()]
         for mass, mask in zip(word_masses, masks, strict=True)]
    )  # fmt: skip
    intervals, total = ratio_intervals(sums[:, :2], sums[:, 2:], samples, seed), sums.sum(0)
    auc = area_under_curve(np.concatenate(word_masses), np.concatenate(masks))
    rows = []
    for column, kind in enumerate(("without", "with")):
        count = total[column + 2]
        mean = total[column] / count if count else float("nan")
        rows.append((kind, mean, *intervals[column], int(count), auc))
    return pd.DataFrame(rows, columns=["kind", "mass", "low", "high", "n", "auc"])
