"""How much of the words before and after a position its contents foretell: top-5 overlap rates (Zheng 2019, 4.3).

Ranks are enough, [T, T] a sentence, never scores over the vocabulary. A rank of 1 is the most probable type. Knows
arrays, no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyses.significance import DEFAULT_SEED, percentile_interval, resampled_sums

TOP = 5  # types that count for each word of a bag
SIDES = ("past", "future")


def overlaps(
    past_ranks: np.ndarray, future_ranks: np.ndarray, words: Sequence[object], types: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The rates of each step t: of y_<=t among the 5t most probable, [T]; of y_>t among 5 (T - t), [T - 1].

    ranks[t, tau]: the rank of y_tau by the prediction at t; words[T] tell types apart. A bag is a set of types, or with
    `types` false of tokens. After the last word there is nothing: t = T has no rate of the future. A text without its
    </s> is the arrays without their last row and column. Raises ValueError where the shapes are not [T, T].
    """
    count = len(words)
    if not past_ranks.shape == future_ranks.shape == (count, count):
        raise ValueError(f"Ranks of {count} words are [{count}, {count}], not {past_ranks.shape}, {future_ranks.shape}")
    first, last = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
    if types:
        seen = list(words)
        first = np.array([word not in seen[:place] for place, word in enumerate(seen)], dtype=bool)
        last = np.array([word not in seen[place + 1 :] for place, word in enumerate(seen)], dtype=bool)
    steps = np.arange(1, count + 1)[:, None]
    before, after = np.tri(count, dtype=bool) & first, ~np.tri(count, dtype=bool) & last
    past = (before & (past_ranks <= TOP * steps)).sum(1) / before.sum(1)
    future = (after & (future_ranks <= TOP * (count - steps))).sum(1)[:-1] / after.sum(1)[:-1]
    return past, future


def rates(
    past: Sequence[np.ndarray], future: Sequence[np.ndarray], samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Means over sentences of their means over steps: side, value, low, high (95 % bootstrap), n sentences."""
    rows = []
    for side, found in zip(SIDES, (past, future), strict=True):
        means = np.array([one.mean() for one in found if len(one)])
        low = high = float("nan")
        if len(means):
            low, high = percentile_interval(resampled_sums(means[:, None], samples, seed)[:, 0] / len(means))
        rows.append((side, float(means.mean()) if len(means) else float("nan"), low, high, len(means)))
    return pd.DataFrame(rows, columns=["side", "value", "low", "high", "n"])
