"""Routing of context words to capsules (Yang 2019, Figures 6 and 7): spread, collapse and differences by distance.

couplings c [iterations, n, m] of n context words with m capsules sum to one over capsules; correlations p of the same
shape are tanh of the correlation of a word with each capsule's query; c + p is the weight of a word. distances [n]: how
many sentences back the word's sentence is. Works on arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyses.routing import effective_capsules
from analyses.significance import DEFAULT_SEED, mean_interval

MEASURES = ("effective", "used", "fullest_share", "negative")
DISTANCE_MEASURES = ("coupling", "correlation", "weight")


def fullest_share(couplings: np.ndarray) -> np.ndarray:
    """The share of all words that the fullest capsule gets: [iterations], from 1 / m (uniform) to 1 (collapsed)."""
    return _received(couplings).max(-1)


def used_capsules(couplings: np.ndarray) -> np.ndarray:
    """Effective number of used capsules: exp of the entropy of the capsules' shares of all words [iterations]."""
    shares = _received(couplings)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.exp(-(shares * logs).sum(-1))


def negative_share(couplings: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Share of negative weights c + p, which subtract a word from a capsule: [iterations]."""
    weights = np.asarray(couplings, dtype=np.float64) + correlations
    return (weights < 0).mean((1, 2))


def of_distances(couplings: np.ndarray, correlations: np.ndarray, distances: np.ndarray, reach: int) -> np.ndarray:
    """`DISTANCE_MEASURES` of the context at each distance: [iterations, reach, 3].

    coupling: the largest coupling of a word, a mean over words, from 1 / m (uniform) to 1 (each word goes to one
    capsule); the mean of all couplings is 1 / m at every distance. correlation: the mean p. weight: the mean of
    |c + p|, the weight of a word whether it is added or subtracted.
    """
    coupled = np.asarray(couplings, dtype=np.float64)
    columns = (coupled.max(-1, keepdims=True), correlations, np.abs(coupled + correlations))
    return np.stack([by_distance(values, distances, reach) for values in columns], axis=-1)


def by_distance(values: np.ndarray, distances: np.ndarray, reach: int) -> np.ndarray:
    """Mean over words and capsules at each distance from 1 of values [iterations, n, m]: [iterations, reach].

    NaN for distances without a word.
    """
    word_distances = np.asarray(distances)
    means = np.full((len(values), reach), np.nan)
    for distance in range(1, reach + 1):
        at_distance = np.asarray(values, dtype=np.float64)[:, word_distances == distance]
        if at_distance.shape[1]:
            means[:, distance - 1] = at_distance.mean((1, 2))
    return means


def _received(couplings: np.ndarray) -> np.ndarray:
    """The share of all words that each capsule gets: [iterations, m]."""
    values = np.asarray(couplings, dtype=np.float64)
    if values.ndim != 3 or not values.shape[1]:
        raise ValueError(
            f"couplings are [iterations, words, capsules], here {list(values.shape)}; there is at least one word"
        )
    return values.mean(1)


@dataclass(frozen=True)
class ContextSpread:
    """Measures of the routing of the context in S sentences with context.

    words [S]: context words; each [S, iterations, 4]: `MEASURES`; far [S, iterations, K, 3]: `DISTANCE_MEASURES` at
    each distance, NaN without a word.
    """

    words: np.ndarray
    each: np.ndarray
    far: np.ndarray


def spread(couplings: np.ndarray, correlations: np.ndarray, distances: np.ndarray, reach: int) -> ContextSpread:
    """The measures of one sentence; raises ValueError if it has no context word.

    Over a test set `effective` is then the mean of the sentences' numbers; of layer routing it is exp of the mean
    entropy, which is never larger.
    """
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
    """Concatenate the measures of several sentences; raises ValueError if there is none."""
    if not spreads:
        raise ValueError("no sentence has a context to measure")
    names = ("words", "each", "far")
    return ContextSpread(*(np.concatenate([getattr(spread, name) for spread in spreads]) for name in names))


def measures(contexts: ContextSpread, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Means over sentences with 95 % bootstrap intervals of `MEASURES`, then of `DISTANCE_MEASURES` by distance.

    Columns: measure, iteration (from 0, as in Figures 6 and 7), distance (0: all), n (sentences), value, low, high.
    """
    rows: list[dict[str, object]] = []
    for column, measure in enumerate(MEASURES):
        for iteration in range(contexts.each.shape[1]):
            values = contexts.each[:, iteration, column]
            rows.append({"measure": measure, "iteration": iteration, "distance": 0, **_mean(values, samples, seed)})
    for column, measure in enumerate(DISTANCE_MEASURES):
        for iteration, index in np.ndindex(*contexts.far.shape[1:3]):
            values = contexts.far[:, iteration, index, column]
            known = values[~np.isnan(values)]
            if len(known):
                rows.append(
                    {
                        "measure": measure,
                        "iteration": iteration,
                        "distance": index + 1,
                        **_mean(known, samples, seed),
                    }
                )
    return pd.DataFrame(rows)


def _mean(values: np.ndarray, samples: int, seed: int) -> dict[str, object]:
    low, high = mean_interval(values, samples, seed)
    return {"n": len(values), "value": float(values.mean()), "low": low, "high": high}


def moved(couplings: np.ndarray, others: np.ndarray) -> float:
    """Total variation distance of the couplings [n, m] of the same words, a mean over words; NaN without words.

    Half the sum of absolute differences: from 0 (the same) to 1 (no capsule in common).
    """
    apart = np.abs(np.asarray(couplings, dtype=np.float64) - others).sum(-1) / 2
    return float(apart.mean()) if apart.size else float("nan")
