"""Measures of routing: entropy and diversity of assignments (Dou 2019, section 5.3), effective and dead capsules.

Assignments [iterations, ..., L, N] give the share of input l that goes to output n; they sum to one over N. Every
measure is a mean over positions, one number per iteration. Sentences are reduced one by one (`sentence_statistics`),
and the means over all sentences get bootstrap intervals (`measures`). Works on arrays only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

DEAD_BELOW = 0.1  # of a uniform share


def entropy(assignments: np.ndarray) -> np.ndarray:
    """Entropy of the assignments of an input, in nats, a mean over inputs and positions: [iterations].

    Dou 2019, Eq. 17, corrected: as printed it lacks the sign and also divides by N (`entropy_as_printed`); the values
    in the paper (6.24 = log 512) are those of the corrected equation.
    """
    return _mean_by_iteration(-_plogp(assignments).sum(-1).mean(-1))


def entropy_as_printed(assignments: np.ndarray) -> np.ndarray:
    """Eq. 17 as printed: the sum of C log C over inputs and outputs, divided by their number: [iterations]."""
    return _mean_by_iteration(_plogp(assignments).mean((-1, -2)))


def diversity(assignments: np.ndarray) -> np.ndarray:
    """One minus the mean cosine of two outputs, each as the vector of its assignments from the inputs: [iterations].

    Dou 2019, Eq. 18, corrected: the mean cosine, as printed, is 1 if all outputs are alike, where the paper reports 0.
    Computed from the squared sum of unit vectors, linear in the number of outputs. NaN for one output. An output
    without any assignment counts as unlike all others.
    """
    values = np.asarray(assignments, dtype=np.float64)
    outputs = values.shape[-1]
    lengths = np.linalg.norm(values, axis=-2, keepdims=True)
    units = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    cosine_sum = np.square(units.sum(-1)).sum(-1) - (lengths[..., 0, :] > 0).sum(-1)
    pairs = outputs * (outputs - 1)
    result = 1 - cosine_sum / pairs if pairs else np.full(values.shape[:-2], np.nan)
    return _mean_by_iteration(np.clip(result, 0, 1))  # outside 0 to 1 only by rounding


def effective_capsules(assignments: np.ndarray) -> np.ndarray:
    """Effective number of outputs of an input, exp of the entropy: [iterations]."""
    return np.exp(entropy(assignments))


def dead_share(assignments: np.ndarray, below: float = DEAD_BELOW) -> np.ndarray:
    """Share of outputs that get less than `below` times 1 / N over all inputs and positions: [iterations]."""
    values = np.asarray(assignments, dtype=np.float64)
    received = values.reshape(len(values), -1, values.shape[-1]).mean(1)  # [iterations, N]
    return (received < below / values.shape[-1]).mean(-1)


@dataclass(frozen=True)
class RoutingStatistics:
    """Measures of routing in S sentences, means over the positions of each sentence.

    positions [S]: their number; entropy [S, iterations, L] in nats; diversity, dead [S, iterations]; activations
    [S, 2]: the lowest and the highest of the outputs of a position (NaN if outputs have none). received
    [iterations, N]: the sum of each output's assignments from all inputs at all positions of all sentences.
    """

    positions: np.ndarray
    entropy: np.ndarray
    diversity: np.ndarray
    dead: np.ndarray
    activations: np.ndarray
    received: np.ndarray

    @property
    def capsules(self) -> int:
        return self.received.shape[-1]

    @property
    def dead_throughout(self) -> np.ndarray:
        """Share of outputs that get less than a tenth of 1 / N over all sentences: [iterations]."""
        uniform = self.positions.sum() * self.entropy.shape[-1] / self.capsules
        return (self.received < DEAD_BELOW * uniform).mean(-1)


def sentence_statistics(assignments: np.ndarray, activations: np.ndarray | None = None) -> RoutingStatistics:
    """The measures of one sentence: assignments [iterations, positions, L, N], activations [positions, N] of outputs.

    Raises ValueError for a sentence without positions.
    """
    values = np.asarray(assignments, dtype=np.float64)
    if values.ndim != 4 or not values.shape[1]:
        raise ValueError(
            "assignments of a sentence are [iterations, positions, inputs, outputs], with at least one position; here "
            f"{list(values.shape)}"
        )
    extremes = (np.nan, np.nan) if activations is None else (activations.min(-1).mean(), activations.max(-1).mean())
    return RoutingStatistics(
        positions=np.array([values.shape[1]]),
        entropy=-_plogp(values).sum(-1).mean(1)[None],
        diversity=diversity(values)[None],
        dead=dead_share(values)[None],
        activations=np.array([extremes], dtype=np.float64),
        received=values.sum((1, 2)),
    )


def concatenate(statistics: Iterable[RoutingStatistics]) -> RoutingStatistics:
    """Concatenate the measures of several sentences; raises ValueError if there is none."""
    parts = list(statistics)
    if not parts:
        raise ValueError("there is no sentence to measure")
    names = ("positions", "entropy", "diversity", "dead", "activations")
    return RoutingStatistics(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        received=np.sum([part.received for part in parts], axis=0),
    )


def measures(statistics: RoutingStatistics, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Means over positions, 95 % bootstrap intervals over sentences: measure, iteration, layer, value, low, high.

    layer: 0 for all inputs together, else its number from 1. Measures: entropy (nats), effective (its exp),
    entropy_as_printed (Eq. 17 as printed), each also by layer; diversity, diversity_as_printed (Eq. 18); dead: share of
    outputs that get less than a tenth of 1 / N within a sentence, a mean over sentences; at the last iteration
    activation_low and activation_high.
    """
    sentences, iterations, layers = statistics.entropy.shape
    by_layer = np.concatenate([statistics.entropy.mean(-1, keepdims=True), statistics.entropy], axis=-1)
    rows: list[dict[str, object]] = []

    def add(measure: str, iteration: int, layer: int, value: float, resampled: np.ndarray) -> None:
        low, high = percentile_interval(resampled)
        rows.append(
            {"measure": measure, "iteration": iteration, "layer": layer, "value": value, "low": low, "high": high}
        )

    values, resampled = _weighted_means(by_layer.reshape(sentences, -1), statistics.positions, samples, seed)
    for column in range(iterations * (layers + 1)):
        key = column // (layers + 1) + 1, column % (layers + 1)
        add("entropy", *key, values[column], resampled[:, column])
        add("effective", *key, np.exp(values[column]), np.exp(resampled[:, column]))
        add(
            "entropy_as_printed",
            *key,
            -values[column] / statistics.capsules,
            -resampled[:, column] / statistics.capsules,
        )
    values, resampled = _weighted_means(statistics.diversity, statistics.positions, samples, seed)
    for column in range(iterations):
        add("diversity", column + 1, 0, values[column], resampled[:, column])
        add("diversity_as_printed", column + 1, 0, 1 - values[column], 1 - resampled[:, column])
    values, resampled = _weighted_means(statistics.dead, np.ones(sentences), samples, seed)
    for column in range(iterations):
        add("dead", column + 1, 0, values[column], resampled[:, column])
    if not np.isnan(statistics.activations).any():
        values, resampled = _weighted_means(statistics.activations, statistics.positions, samples, seed)
        for column, name in enumerate(("activation_low", "activation_high")):
            add(name, iterations, 0, values[column], resampled[:, column])
    return pd.DataFrame(rows)


def differences(
    first: RoutingStatistics, second: RoutingStatistics, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """First minus second at the last iteration, paired over the same sentences: measure, delta, low, high (95 %).

    Measures: entropy (nats), diversity, dead. Raises ValueError if the sentences differ.
    """
    if not np.array_equal(first.positions, second.positions):
        raise ValueError("the two were measured on different sentences; measure both on the same")
    rows = []
    for measure, weights in (("entropy", first.positions), ("diversity", first.positions), ("dead", None)):
        first_mean, second_mean = (
            getattr(statistics, measure)[:, -1].reshape(len(statistics.positions), -1).mean(-1, keepdims=True)
            for statistics in (first, second)
        )
        deltas = first_mean - second_mean
        sentence_weights = np.ones(len(deltas)) if weights is None else weights
        values, resampled = _weighted_means(deltas, sentence_weights, samples, seed)
        low, high = percentile_interval(resampled[:, 0])
        rows.append({"measure": measure, "delta": values[0], "low": low, "high": high})
    return pd.DataFrame(rows)


def shuffle_positions(generator: np.random.Generator, *arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays [P, L, ...] with the positions of each input permuted independently (permutation control).

    All arrays of an input are permuted alike, so each layer keeps its votes for all outputs; only the correspondence
    between layers at the same position is destroyed. `shuffle_inputs` is a weaker control, under which every output
    keeps its set of votes.
    """
    positions, inputs = arrays[0].shape[:2]
    orders = np.stack([generator.permutation(positions) for _ in range(inputs)], axis=1)  # [P, L]
    return [array[orders, np.arange(inputs)] for array in arrays]


def shuffle_inputs(generator: np.random.Generator, votes: np.ndarray) -> np.ndarray:
    """Votes [P, L, N, D] with the inputs of a position permuted independently for each output (permutation control).

    Each output keeps its set of votes, but they no longer come from the same inputs as those of other outputs.
    """
    inputs = np.broadcast_to(np.arange(votes.shape[1])[:, None], votes.shape[:3])
    return np.take_along_axis(votes, generator.permuted(inputs, axis=1)[..., None], axis=1)


def _weighted_means(values: np.ndarray, weights: np.ndarray, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of values [S, k] over sentences, and over resampled sentences: [k], [samples, k]."""
    weighted = values * weights[:, None]
    sums = resampled_sums(np.column_stack([weights, weighted]), samples, seed)
    return weighted.sum(0) / weights.sum(), sums[:, 1:] / sums[:, :1]


def _plogp(assignments: np.ndarray) -> np.ndarray:
    values = np.asarray(assignments, dtype=np.float64)
    return values * np.log(values, out=np.zeros_like(values), where=values > 0)


def _mean_by_iteration(values: np.ndarray) -> np.ndarray:
    """The mean over all axes but the first."""
    return values.reshape(len(values), -1).mean(1)
