"""Choosing anew among the hypotheses of n-best lists, by weights of what is known of each: BLEU without decoding again.

Each hypothesis has a number for every part (log P by a head, in nats; its length in pieces) and its statistics under a
metric, so that any weights are a product, a choice a sentence and a sum (Zheng 2018, Table 7; Och 2003 tunes such
weights exactly, here a grid is searched). Knows arrays and statistics, no system.
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
    """The lists of a test set: values[hypotheses, parts] named by `parts`, those of sentence s at starts[s] to
    starts[s + 1], the search's own choice first; statistics: a row a hypothesis."""

    parts: tuple[str, ...]
    values: np.ndarray
    starts: np.ndarray
    statistics: Statistics

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def system(self) -> str:
        """The part that is the system's own prediction: where its heads are mixed in the search, the decoder's."""
        return DECODER if DECODER in self.parts else MAIN

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The parts whose weights are free: the system's own has weight 1, and a mixture of the others none."""
        return tuple(part for part in self.parts if part not in (self.system, MAIN))

    @property
    def ones(self) -> dict[str, float]:
        """Every head by one, the length by nothing: the sum of the log-probabilities."""
        return {self.system: 1.0, **{part: float(part != LENGTH) for part in self.free}}

    def chosen(self, weights: Weights) -> np.ndarray:
        """The row of the best hypothesis of each sentence [sentences], the first among equals. Raises ValueError for a
        weight of no part."""
        for name in weights:
            if name not in self.parts:
                raise ValueError(f"these lists have no part {name!r}; there are {', '.join(self.parts)}")
        scores = self.values @ np.array([weights.get(part, 0.0) for part in self.parts])
        bounds = zip(self.starts[:-1], self.starts[1:], strict=True)
        return np.array([begin + scores[begin:end].argmax() for begin, end in bounds], dtype=np.int64)

    def of(self, weights: Weights | None) -> Statistics:
        """The statistics of what is chosen by weights; None: of the search's own choice."""
        return self.statistics.subset(self.starts[:-1] if weights is None else self.chosen(weights))


def compared(
    lists: Lists, choices: Mapping[str, Weights | None], samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """A row a choice of weights, the first being what the others are compared with: choice, score, low, high (95 %
    bootstrap), delta, delta_low, delta_high, p_value (paired bootstrap), changed (share of sentences with another
    hypothesis than the search's)."""
    found = {name: lists.of(weights) for name, weights in choices.items()}
    intervals = bootstrap_intervals(found, samples, seed)
    first = next(iter(found))
    apart = paired_bootstraps(found[first], {name: own for name, own in found.items() if name != first}, samples, seed)
    rows = []
    for name, weights in choices.items():
        own, delta = intervals[name], apart.get(name)
        differs = (delta.delta, delta.low, delta.high, delta.p_value) if delta else (np.nan,) * 4
        rows.append((name, own.score, own.low, own.high, *differs, _changed(lists, weights)))
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
    """The score as one weight runs over a grid and the others stay: weight, score, low, high, changed."""
    values = tuple(grid) or grid_of(part)
    every = {str(value): {**weights, part: value} for value in values}
    intervals = bootstrap_intervals({name: lists.of(own) for name, own in every.items()}, samples, seed)
    rows = [
        (value, found.score, found.low, found.high, _changed(lists, own))
        for value, (own, found) in zip(values, zip(every.values(), intervals.values(), strict=True), strict=True)
    ]
    return pd.DataFrame(rows, columns=["weight", "score", "low", "high", "changed"])


def grid_of(part: str) -> tuple[float, ...]:
    """The weights of a part that are tried unless others are given."""
    return LENGTH_GRID if part == LENGTH else GRID


def tuned(lists: Lists, rounds: int = 3) -> dict[str, float]:
    """The free weights with the best score that a search by coordinates over their grids finds from ones, on the lists
    that it is shown: of no worth but for other sentences. Of equal scores the weights that were there stay."""
    weights, best = lists.ones, lists.of(lists.ones).total
    for _ in range(rounds):
        before = dict(weights)
        for part in lists.free:
            for value in grid_of(part):
                score = lists.of({**weights, part: value}).total
                if score > best:
                    weights, best = {**weights, part: value}, score
        if weights == before:
            break
    return weights
