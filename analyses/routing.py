"""How routing spreads: entropy and diversity of assignments (Dou 2019, section 5.3), effective and dead capsules.

Assignments [iterations, ..., L, N] say how much of input l goes to output n; they sum to one over N. Every measure is a
mean over positions, one number an iteration. Over many sentences they are reduced as they come (`spread`), and the
means over all get bootstrap intervals over sentences (`measures`). Knows arrays only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

DEAD_BELOW = 0.1  # of an even part


def entropy(assignments: np.ndarray) -> np.ndarray:
    """Entropy of where an input goes, in nats, a mean over inputs and positions: [iterations].

    Dou 2019, Eq. 17, corrected: as printed it lacks the sign and divides by N too (`entropy_as_printed`); the numbers
    of the paper (6.24 = log 512) are these.
    """
    return _positions(-_plogp(assignments).sum(-1).mean(-1))


def entropy_as_printed(assignments: np.ndarray) -> np.ndarray:
    """Eq. 17 to the letter: the sum of C log C over inputs and outputs, divided by their number: [iterations]."""
    return _positions(_plogp(assignments).mean((-1, -2)))


def diversity(assignments: np.ndarray) -> np.ndarray:
    """One minus the mean cosine of two outputs, each the vector of what it gets from the inputs: [iterations].

    Dou 2019, Eq. 18, corrected: the mean cosine itself, as printed, is 1 where all are alike, and the paper prints 0
    there. By the square of the sum of unit vectors, so in the number of outputs, not of pairs. NaN for one output.
    """
    values = np.asarray(assignments, dtype=np.float64)
    outputs = values.shape[-1]
    lengths = np.linalg.norm(values, axis=-2, keepdims=True)
    units = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    together = np.square(units.sum(-1)).sum(-1) - (lengths[..., 0, :] > 0).sum(-1)
    pairs = outputs * (outputs - 1)
    found = 1 - together / pairs if pairs else np.full(values.shape[:-2], np.nan)
    return _positions(np.clip(found, 0, 1))  # shares are not negative, so neither are their cosines; but for rounding


def effective_capsules(assignments: np.ndarray) -> np.ndarray:
    """exp of the entropy: among how many outputs an input is spread as if evenly: [iterations]."""
    return np.exp(entropy(assignments))


def dead_share(assignments: np.ndarray, below: float = DEAD_BELOW) -> np.ndarray:
    """Share of outputs that get, over all inputs and positions, less than `below` of an even part: [iterations]."""
    values = np.asarray(assignments, dtype=np.float64)
    got = values.reshape(len(values), -1, values.shape[-1]).mean(1)  # [iterations, N]
    return (got < below / values.shape[-1]).mean(-1)


@dataclass(frozen=True)
class Spread:
    """What routing did in S sentences; but for `received` and `positions`, means over the positions of each sentence.

    positions [S]; entropy [S, iterations, L] in nats; diversity, dead [S, iterations]; activations [S, 2]: the lowest
    and the highest among the outputs of a position (NaN where outputs have none). received [iterations, N]: what each
    output got from all inputs at all positions of all sentences.
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
        """Share of outputs that get less than a tenth of an even part over all sentences: [iterations]."""
        even = self.positions.sum() * self.entropy.shape[-1] / self.capsules
        return (self.received < DEAD_BELOW * even).mean(-1)


def spread(assignments: np.ndarray, activations: np.ndarray | None = None) -> Spread:
    """One sentence: assignments [iterations, positions, L, N], activations [positions, N] of the outputs.

    Raises ValueError for a sentence without positions.
    """
    values = np.asarray(assignments, dtype=np.float64)
    if values.ndim != 4 or not values.shape[1]:
        raise ValueError(
            f"assignments of a sentence are [iterations, positions, inputs, outputs], here {list(values.shape)}; there "
            "is at least one position"
        )
    ends = (np.nan, np.nan) if activations is None else (activations.min(-1).mean(), activations.max(-1).mean())
    return Spread(
        positions=np.array([values.shape[1]]),
        entropy=-_plogp(values).sum(-1).mean(1)[None],
        diversity=diversity(values)[None],
        dead=dead_share(values)[None],
        activations=np.array([ends], dtype=np.float64),
        received=values.sum((1, 2)),
    )


def pooled(spreads: Iterable[Spread]) -> Spread:
    """Several sentences as one; raises ValueError where there is none."""
    found = list(spreads)
    if not found:
        raise ValueError("there is no sentence to measure")
    names = ("positions", "entropy", "diversity", "dead", "activations")
    return Spread(
        **{name: np.concatenate([getattr(one, name) for one in found]) for name in names},
        received=np.sum([one.received for one in found], axis=0),
    )


def measures(found: Spread, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Means over positions, 95 % bootstrap intervals over sentences: measure, iteration, layer, value, low, high.

    layer: 0 for all inputs together, else its number from 1. Measures: entropy (nats), effective (its exp),
    entropy_as_printed (Eq. 17 to the letter), each also by layer; diversity, diversity_as_printed (Eq. 18); dead: share
    of outputs that get less than a tenth of an even part within a sentence, a mean over sentences; at the last
    iteration activation_low and activation_high.
    """
    sentences, iterations, layers = found.entropy.shape
    by_layer = np.concatenate([found.entropy.mean(-1, keepdims=True), found.entropy], axis=-1)
    rows: list[dict[str, object]] = []

    def add(measure: str, iteration: int, layer: int, value: float, drawn: np.ndarray) -> None:
        low, high = percentile_interval(drawn)
        rows.append(
            {"measure": measure, "iteration": iteration, "layer": layer, "value": value, "low": low, "high": high}
        )

    values, drawn = _resampled(by_layer.reshape(sentences, -1), found.positions, samples, seed)
    for place in range(iterations * (layers + 1)):
        at = place // (layers + 1) + 1, place % (layers + 1)
        add("entropy", *at, values[place], drawn[:, place])
        add("effective", *at, np.exp(values[place]), np.exp(drawn[:, place]))
        add("entropy_as_printed", *at, -values[place] / found.capsules, -drawn[:, place] / found.capsules)
    values, drawn = _resampled(found.diversity, found.positions, samples, seed)
    for place in range(iterations):
        add("diversity", place + 1, 0, values[place], drawn[:, place])
        add("diversity_as_printed", place + 1, 0, 1 - values[place], 1 - drawn[:, place])
    values, drawn = _resampled(found.dead, np.ones(sentences), samples, seed)
    for place in range(iterations):
        add("dead", place + 1, 0, values[place], drawn[:, place])
    if not np.isnan(found.activations).any():
        values, drawn = _resampled(found.activations, found.positions, samples, seed)
        for place, name in enumerate(("activation_low", "activation_high")):
            add(name, iterations, 0, values[place], drawn[:, place])
    return pd.DataFrame(rows)


def differences(first: Spread, second: Spread, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """First minus second at the last iteration, paired over the same sentences: measure, delta, low, high (95 %).

    Measures: entropy (nats), diversity, dead. Raises ValueError where the sentences are not the same ones.
    """
    if not np.array_equal(first.positions, second.positions):
        raise ValueError("the two were not measured on the same sentences; measure both on the same")
    rows = []
    for measure, weights in (("entropy", first.positions), ("diversity", first.positions), ("dead", None)):
        ours, theirs = (getattr(one, measure)[:, -1].reshape(len(one.positions), -1) for one in (first, second))
        each = ours.mean(-1, keepdims=True) - theirs.mean(-1, keepdims=True)
        even = np.ones(len(each)) if weights is None else weights
        values, drawn = _resampled(each, even, samples, seed)
        low, high = percentile_interval(drawn[:, 0])
        rows.append({"measure": measure, "delta": values[0], "low": low, "high": high})
    return pd.DataFrame(rows)


def shuffled(generator: np.random.Generator, *arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays [P, L, ...] with what each input says dealt out again over the positions, in an order of its own.

    What a layer says for all outputs moves together, and with it what else is its own (the same order for all arrays).
    So every layer keeps its votes, and what they have in common; only what the layers say of the same position no
    longer stands side by side. `exchanged` leaves more as it was: every output keeps the very votes that agreed.
    """
    positions, inputs = arrays[0].shape[:2]
    orders = np.stack([generator.permutation(positions) for _ in range(inputs)], axis=1)  # [P, L]
    return [array[orders, np.arange(inputs)] for array in arrays]


def exchanged(generator: np.random.Generator, votes: np.ndarray) -> np.ndarray:
    """Votes [P, L, N, D] with those for each output exchanged between the inputs of a position, in an order of its own.

    An output hears what it heard, but no longer from whom: what an input says to all outputs is gone.
    """
    places = np.broadcast_to(np.arange(votes.shape[1])[:, None], votes.shape[:3])
    return np.take_along_axis(votes, generator.permuted(places, axis=1)[..., None], axis=1)


def _resampled(values: np.ndarray, weights: np.ndarray, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of values [S, k] over sentences, and over resampled sentences: [k], [samples, k]."""
    weighted = values * weights[:, None]
    sums = resampled_sums(np.column_stack([weights, weighted]), samples, seed)
    return weighted.sum(0) / weights.sum(), sums[:, 1:] / sums[:, :1]


def _plogp(assignments: np.ndarray) -> np.ndarray:
    values = np.asarray(assignments, dtype=np.float64)
    return values * np.log(values, out=np.zeros_like(values), where=values > 0)


def _positions(values: np.ndarray) -> np.ndarray:
    """The mean over all axes but the first."""
    return values.reshape(len(values), -1).mean(1)
