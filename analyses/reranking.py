"""Reranking of n-best lists by weighted model scores, without decoding again.

Each hypothesis has a value for every part (log P by a head, in nats; its length in pieces) and its statistics under a
metric, so the score for any weights is a matrix product, an argmax per sentence and a sum (Zheng 2018, Table 7; Och
2003 tunes such weights exactly, here a grid is searched). Works on arrays and statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analyses.scores import Statistics
from analyses.significance import DEFAULT_SEED, bootstrap_intervals, paired_bootstraps

LENGTH, MAIN, DECODER = "length", "main", "decoder"
GRID = tuple(round(0.1 * step, 1) for step in range(31))  # of log-probabilities
LENGTH_GRID = tuple(round(0.1 * step, 1) for step in range(-10, 21))
Weights = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Lists:
    """The n-best lists of a test set.

    values[hypotheses, parts]: the columns named by `parts`, the rows of sentence s from starts[s] to starts[s + 1], the
    1-best of the search first; statistics: one row per hypothesis.
    """

    parts: tuple[str, ...]
    values: np.ndarray
    starts: np.ndarray
    statistics: Statistics

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def system(self) -> str:
        """The part that is the system's prediction: the decoder's if the search mixes heads."""
        return DECODER if DECODER in self.parts else MAIN

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The parts with free weights: the system's prediction has weight 1, a mixture of the others weight 0."""
        return tuple(part for part in self.parts if part not in (self.system, MAIN))

    @property
    def ones(self) -> dict[str, float]:
        """Weight 1 for every head and 0 for the length: the sum of the log-probabilities."""
        return {self.system: 1.0, **{part: float(part != LENGTH) for part in self.free}}

    def chosen(self, weights: Weights) -> np.ndarray:
        """The row of the best hypothesis of each sentence [sentences], the first of equals.

        Raises ValueError for a weight of an unknown part.
        """
        for name in weights:
            if name not in self.parts:
                raise ValueError(f"these lists have no part {name!r}; there are {', '.join(self.parts)}")
        scores = self.values @ np.array([weights.get(part, 0.0) for part in self.parts])
        bounds = zip(self.starts[:-1], self.starts[1:], strict=True)
        return np.array([start + scores[start:end].argmax() for start, end in bounds], dtype=np.int64)

    def of(self, weights: Weights | None) -> Statistics:
        """The statistics of the hypotheses selected by weights; None: of the 1-best of the search."""
        return self.statistics.subset(self.starts[:-1] if weights is None else self.chosen(weights))


def compared(
    lists: Lists, choices: Mapping[str, Weights | None], samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Compare several weights with the first: one row each.

    Columns: choice, score, low, high (95 % bootstrap), delta, delta_low, delta_high, p_value (paired bootstrap),
    changed (share of sentences whose hypothesis is not the 1-best of the search).
    """
    statistics = {name: lists.of(weights) for name, weights in choices.items()}
    intervals = bootstrap_intervals(statistics, samples, seed)
    baseline = next(iter(statistics))
    others = {name: scored for name, scored in statistics.items() if name != baseline}
    comparisons = paired_bootstraps(statistics[baseline], others, samples, seed)
    rows = []
    for name, weights in choices.items():
        interval, delta = intervals[name], comparisons.get(name)
        differs = (delta.delta, delta.low, delta.high, delta.p_value) if delta else (np.nan,) * 4
        rows.append((name, interval.score, interval.low, interval.high, *differs, _changed(lists, weights)))
    columns = ["choice", "score", "low", "high", "delta", "delta_low", "delta_high", "p_value", "changed"]
    return pd.DataFrame(rows, columns=columns)


def _changed(lists: Lists, weights: Weights | None) -> float:
    return 0.0 if weights is None else float((lists.chosen(weights) != lists.starts[:-1]).mean())


def curve(
    lists: Lists,
    weights: Weights,
    part: str,
    grid: Sequence[float] = (),
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """The score as one weight varies over a grid, the others fixed: weight, score, low, high, changed."""
    values = tuple(grid) or grid_of(part)
    weights_by_value = {str(value): {**weights, part: value} for value in values}
    intervals = bootstrap_intervals(
        {name: lists.of(point_weights) for name, point_weights in weights_by_value.items()}, samples, seed
    )
    rows = [
        (value, interval.score, interval.low, interval.high, _changed(lists, point_weights))
        for value, (point_weights, interval) in zip(
            values, zip(weights_by_value.values(), intervals.values(), strict=True), strict=True
        )
    ]
    return pd.DataFrame(rows, columns=["weight", "score", "low", "high", "changed"])


def grid_of(part: str) -> tuple[float, ...]:
    """The default grid of weights of a part."""
    return LENGTH_GRID if part == LENGTH else GRID


def tuned(lists: Lists, rounds: int = 3) -> dict[str, float]:
    """Tune the free weights by coordinate ascent over their grids, starting from ones.

    Evaluate the result on other sentences than these. A weight changes only if the score improves: rises, or falls
    under a metric such as TER.
    """
    first = lists.of(lists.ones)
    sign = 1 if first.higher_is_better else -1
    weights, best = lists.ones, sign * first.total
    for _ in range(rounds):
        before = dict(weights)
        for part in lists.free:
            for value in grid_of(part):
                score = sign * lists.of({**weights, part: value}).total
                if score > best:
                    weights, best = {**weights, part: value}, score
        if weights == before:
            break
    return weights
