"""Top-5 overlap rates of past and future words with the predictions from PAST and FUTURE contents (Zheng 2019, 4.3).

Computed from ranks [T, T] per sentence, without scores over the vocabulary. Rank 1 is the most probable type. Works on
arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.significance import DEFAULT_SEED, mean_interval

TOP = 5  # predicted types per word of a bag
SIDES = ("past", "future")


def overlaps(
    past_ranks: np.ndarray, future_ranks: np.ndarray, words: Sequence[object], types: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Overlap rates at each step t: of y_<=t with the 5t most probable types, [T]; of y_>t with 5 (T - t), [T - 1].

    ranks[t, tau]: the rank of y_tau in the prediction at t; words[T]: the type of each word. A bag is a set of types,
    or of tokens if `types` is false. t = T has no future rate, as no word follows. For a text without its </s> drop the
    last row and column of the arrays. Raises ValueError if the shapes are not [T, T].
    """
    count = len(words)
    if not past_ranks.shape == future_ranks.shape == (count, count):
        raise ValueError(f"Ranks of {count} words are [{count}, {count}], not {past_ranks.shape}, {future_ranks.shape}")
    first, last = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
    if types:
        seen = list(words)
        first = np.array([word not in seen[:position] for position, word in enumerate(seen)], dtype=bool)
        last = np.array([word not in seen[position + 1 :] for position, word in enumerate(seen)], dtype=bool)
    steps = np.arange(1, count + 1)[:, None]
    before, after = np.tri(count, dtype=bool) & first, ~np.tri(count, dtype=bool) & last
    past = (before & (past_ranks <= TOP * steps)).sum(1) / before.sum(1)
    future = (after & (future_ranks <= TOP * (count - steps))).sum(1)[:-1] / after.sum(1)[:-1]
    return past, future


def ranks_by_frequency(words: Sequence[str], counts: Mapping[str, int]) -> np.ndarray:
    """The ranks of a prediction that knows only how frequent types are: [T, T], the same at every step.

    Equally frequent types rank in their order in `counts`; types that are not in it come last.
    """
    ordered = sorted(counts, key=lambda word: -counts[word])
    rank = {word: place for place, word in enumerate(ordered, start=1)}
    return np.tile([rank.get(word, len(rank) + 1) for word in words], (len(words), 1))


def rates(
    past: Sequence[np.ndarray], future: Sequence[np.ndarray], samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Means over sentences of the mean over steps: side, value, low, high (95 % bootstrap), n (sentences)."""
    rows = []
    for side, sentences in zip(SIDES, (past, future), strict=True):
        means = np.array([steps.mean() for steps in sentences if len(steps)])
        low = high = float("nan")
        if len(means):
            low, high = mean_interval(means, samples, seed)
        rows.append((side, float(means.mean()) if len(means) else float("nan"), low, high, len(means)))
    return pd.DataFrame(rows, columns=["side", "value", "low", "high", "n"])
