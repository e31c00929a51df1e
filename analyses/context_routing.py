"""Routing of context words to capsules (Yang 2019, Figures 6 and 7): how it spreads, collapses and differs by distance.

couplings c [iterations, n, m] of n context words with m capsules sum to one over capsules; correlations p of the same
shape are tanh of the correlation of a word with each capsule's query; c + p is what a word counts by. distances [n]:
how many sentences before the word's own stands. Knows arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyses.routing import effective_capsules
from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

MEASURES = ("effective", "used", "fullest_share", "negative")
DISTANCE_MEASURES = ("coupling", "correlation", "weight")


def fullest_share(couplings: np.ndarray) -> np.ndarray:
    """What the fullest capsule gets of all words: [iterations]; 1 / m where all get alike, 1 where all go to one."""
    return _received(couplings).max(-1)


def used_capsules(couplings: np.ndarray) -> np.ndarray:
    """exp of the entropy of what capsules get of all words together: [iterations]; 1 where all words go to one."""
    shares = _received(couplings)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.exp(-(shares * logs).sum(-1))


def negative_share(couplings: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Share of the weights c + p that are below zero, so that a word is taken off a capsule: [iterations]."""
    weights = np.asarray(couplings, dtype=np.float64) + correlations
    return (weights < 0).mean((1, 2))


def of_distances(couplings: np.ndarray, correlations: np.ndarray, distances: np.ndarray, reach: int) -> np.ndarray:
    """What tells context sentences apart by how far they stand: [iterations, reach, 3], the numbers of
    `DISTANCE_MEASURES`.

    The largest coupling of a word, a mean over words: 1 / m where words go to all capsules alike, 1 where each goes to
    one (the mean of all couplings is 1 / m at every distance). The mean p. The mean of |c + p|: how much a word counts,
    be it added to a capsule or taken off it.
    """
    coupled = np.asarray(couplings, dtype=np.float64)
    columns = (coupled.max(-1, keepdims=True), correlations, np.abs(coupled + correlations))
    return np.stack([by_distance(values, distances, reach) for values in columns], axis=-1)


def by_distance(values: np.ndarray, distances: np.ndarray, reach: int) -> np.ndarray:
    """Mean over words and capsules of values [iterations, n, m] at each distance from 1: [iterations, reach]; NaN where
    no word stands."""
    known = np.asarray(distances)
    found = np.full((len(values), reach), np.nan)
    for distance in range(1, reach + 1):
        own = np.asarray(values, dtype=np.float64)[:, known == distance]
        if own.shape[1]:
            found[:, distance - 1] = own.mean((1, 2))
    return found


def _received(couplings: np.ndarray) -> np.ndarray:
    """The share of each capsule: [iterations, m]."""
    values = np.asarray(couplings, dtype=np.float64)
    if values.ndim != 3 or not values.shape[1]:
        raise ValueError(
            f"couplings are [iterations, words, capsules], here {list(values.shape)}; there is at least one word"
        )
    return values.mean(1)


@dataclass(frozen=True)
class ContextSpread:
    """What routing of the context did in S sentences that have one.

    words [S]; each [S, iterations, 4], the numbers of `MEASURES`; far [S, iterations, K, 3], those of
    `DISTANCE_MEASURES` at each distance, NaN where no word stands.
    """

    words: np.ndarray
    each: np.ndarray
    far: np.ndarray


def spread(couplings: np.ndarray, correlations: np.ndarray, distances: np.ndarray, reach: int) -> ContextSpread:
    """One sentence; raises ValueError where it has no context word."""
    received = fullest_share(couplings)
    columns = (
        effective_capsules(couplings), used_capsules(couplings), received, negative_share(couplings, correlations),
    )  # fmt: skip
    return ContextSpread(
        np.array([couplings.shape[1]]),
        np.stack(columns, axis=-1)[None],
        of_distances(couplings, correlations, distances, reach)[None],
    )


def together(spreads: Sequence[ContextSpread]) -> ContextSpread:
    """Several sentences as one; raises ValueError where there is none."""
    if not spreads:
        raise ValueError("no sentence has a context to measure")
    names = ("words", "each", "far")
    return ContextSpread(*(np.concatenate([getattr(one, name) for one in spreads]) for name in names))


def measures(found: ContextSpread, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Means over sentences with 95 % bootstrap intervals: measure, iteration (from 0, as Figures 6 and 7 count),
    distance (0: all), n (sentences), value, low, high.

    Measures: those of `MEASURES`, then those of `DISTANCE_MEASURES` by distance.
    """
    rows: list[dict[str, object]] = []
    for place, measure in enumerate(MEASURES):
        for iteration in range(found.each.shape[1]):
            values = found.each[:, iteration, place]
            rows.append({"measure": measure, "iteration": iteration, "distance": 0, **_mean(values, samples, seed)})
    for place, measure in enumerate(DISTANCE_MEASURES):
        for iteration, column in np.ndindex(*found.far.shape[1:3]):
            values = found.far[:, iteration, column, place]
            own = values[~np.isnan(values)]
            if len(own):
                rows.append(
                    {"measure": measure, "iteration": iteration, "distance": column + 1, **_mean(own, samples, seed)}
                )
    return pd.DataFrame(rows)


def _mean(values: np.ndarray, samples: int, seed: int) -> dict[str, object]:
    sums = resampled_sums(np.column_stack([np.ones(len(values)), values]), samples, seed)
    low, high = percentile_interval(sums[:, 1] / sums[:, 0])
    return {"n": len(values), "value": float(values.mean()), "low": low, "high": high}


def moved(couplings: np.ndarray, others: np.ndarray) -> float:
    """How far the same words' couplings [n, m] lie apart: mean over words of half the sum of absolute differences, from
    0 (the same) to 1 (no capsule in common); NaN without words."""
    apart = np.abs(np.asarray(couplings, dtype=np.float64) - others).sum(-1) / 2
    return float(apart.mean()) if apart.size else float("nan")
