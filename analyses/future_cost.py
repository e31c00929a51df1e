"""Estimated future cost against the cost of the next step: overlay for one sentence, calibration over many.

The estimate is log P^(y_i | y_{i-1}) of the future-cost head, made one step before y_i is generated (Duan 2020,
Eq. 12); the realised value is log P(y_i) of the decoder itself. Costs are their negatives, in nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from analyses.significance import DEFAULT_SEED, ratio_intervals

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Agreement:
    """Agreement of estimated and realised log-probabilities; error = estimated - realised, in nats; bias: its mean.

    A positive bias is optimism: the next word costs more than estimated.
    """

    pearson: float
    spearman: float
    mean_absolute_error: float
    bias: float
    n: int


def overlay(tokens: Sequence[str], log_prob: Values, estimated: Values, gate: Values | None = None) -> pd.DataFrame:
    """One row per step of a sentence: step (from 1), token, log_prob, estimated, gate, error (estimated - log_prob).

    log_prob[T]: realised, nats. estimated[T]: of the same word, made one step earlier; NaN where there is none.
    gate[T]: how much of the future cost Model II lets in (Eq. 15), NaN without one.
    """
    columns = {"log_prob": log_prob, "estimated": estimated, "gate": [np.nan] * len(tokens) if gate is None else gate}
    for name, values in columns.items():
        if len(values) != len(tokens):
            raise ValueError(f"There are {len(tokens)} tokens but {len(values)} values of {name}: give one for each.")
    table = pd.DataFrame({"step": np.arange(1, len(tokens) + 1), "token": list(tokens)})
    for name, values in columns.items():
        table[name] = np.asarray(values, dtype=np.float64)
    return table.assign(error=table.estimated - table.log_prob)


def calibration(
    estimated: Sequence[Values],
    realised: Sequence[Values],
    bins: int = 10,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """Estimated against realised cost (-log P, nats) in quantile bins of the estimated cost.

    Arguments are log-probabilities of each sentence [T]; pairs with a NaN are left out. Columns: bin, low_edge,
    high_edge, n, mean_estimated, mean_realised, low, high: the last two are the 95 % interval of mean_realised by a
    bootstrap of sentences, since the words of one are alike. Equal estimates share a bin, so there may be fewer bins
    than requested.
    """
    pairs = [_pairs(*sentence) for sentence in zip(estimated, realised, strict=True)]
    costs, numbers = -_nonempty(np.concatenate(pairs)), np.repeat(np.arange(len(pairs)), [len(one) for one in pairs])
    edges = np.unique(np.quantile(costs[:, 0], np.linspace(0, 1, bins + 1)))
    in_bins = np.clip(np.searchsorted(edges, costs[:, 0], side="left") - 1, 0, max(len(edges) - 2, 0))
    sums = np.zeros((len(pairs), max(len(edges) - 1, 1), 2))  # of each sentence and bin: words, realised cost
    np.add.at(sums, (numbers, in_bins), np.column_stack([np.ones(len(costs)), costs[:, 1]]))
    intervals = ratio_intervals(sums[..., 1], sums[..., 0], samples, seed)
    rows = []
    for number in np.unique(in_bins):
        part = costs[in_bins == number]
        rows.append((part[:, 0].min(), part[:, 0].max(), len(part), *part.mean(axis=0), *intervals[number]))
    columns = ["low_edge", "high_edge", "n", "mean_estimated", "mean_realised", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(0, "bin", np.arange(1, len(table) + 1))
    return table


def summary(estimated: Values, realised: Values) -> Agreement:
    """Correlation, mean absolute error and bias of estimated against realised log-probabilities [n], in nats.

    Correlations are NaN if there are fewer than two pairs or one side is constant.
    """
    pairs = _nonempty(_pairs(estimated, realised))
    error = pairs[:, 0] - pairs[:, 1]
    varied = len(pairs) > 1 and bool((np.ptp(pairs, axis=0) > 0).all())
    return Agreement(
        pearson=float(pearsonr(pairs[:, 0], pairs[:, 1])[0]) if varied else np.nan,
        spearman=float(spearmanr(pairs[:, 0], pairs[:, 1])[0]) if varied else np.nan,
        mean_absolute_error=float(np.abs(error).mean()),
        bias=float(error.mean()),
        n=len(pairs),
    )


def _pairs(estimated: Values, realised: Values) -> np.ndarray:
    """Pairs (estimated, realised) [n, 2] as float64, without the steps that have no estimate."""
    if len(estimated) != len(realised):
        raise ValueError(
            f"There are {len(estimated)} estimated and {len(realised)} realised values: give both for the same steps."
        )
    pairs = np.stack([np.asarray(estimated, dtype=np.float64), np.asarray(realised, dtype=np.float64)], axis=1)
    return pairs[~np.isnan(pairs).any(axis=1)]


def _nonempty(pairs: np.ndarray) -> np.ndarray:
    if not len(pairs):
        raise ValueError("There is no step with both an estimated and a realised log-probability.")
    return pairs
