"""PAST and FUTURE layers along a translation (Zheng 2018), and coverage of source words by target words.

The states are measured by one number per step: norms, cosines, log-probabilities, ranks. Here they are averaged over
the relative position; a rank becomes 1 if the correct word is ranked first, else 0. Works on arrays and words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.attention import word_numbers
from analyses.past_future import along
from analyses.significance import DEFAULT_SEED

SIDES = ("past", "future")
WHOLE, SYSTEM = "whole", "system"  # both layers together; the system's own prediction
# The measures of each side at step t, which predicts word t, by their names in traces.
MEASURES = {
    "norm": "length of the state",
    "change": "length of its change",
    "update_gate": "share that is kept",
    "cosine_context": "cosine of the change with the context",
    "cosine_word": "cosine of the change with the word",
    "log_prob": "log P of the right word",
    "rank": "rank of the right word",
    "first": "right word is first",
    "cosine": "cosine of PAST + FUTURE with the source",
    "distance": "distance of PAST + FUTURE from the source",
}
Steps = Mapping[str, np.ndarray]  # SIDE.MEASURE -> values [T]


def course(sentences: Sequence[Steps], bins: int = 10, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Means of every measure over the relative position t / T.

    Columns: measure, side, place, value, low, high (95 % bootstrap over sentences), n (steps). "rank" is replaced by
    "first": 1 if the rank is 1, else 0.
    """
    tables = []
    for name in sentences[0]:
        side, _, measure = name.rpartition(".")
        values = [np.asarray(steps[name], dtype=np.float64) for steps in sentences]
        if measure == "rank":
            measure, values = "first", [(ranks == 1).astype(np.float64) for ranks in values]
        table = along({side: values}, list(map(len, values)), bins, samples, seed)
        tables.append(table.assign(measure=measure))
    table = pd.concat(tables, ignore_index=True)
    return table[["measure", *(name for name in table if name != "measure")]]


def steadiness(sentences: Sequence[Steps]) -> pd.DataFrame:
    """Constancy of PAST + FUTURE along each sentence of two or more steps, one row per sentence.

    Columns: distance, cosine (means over steps, both to the summary of the source; the distance in units of its
    length), distance_spread, cosine_spread (standard deviations).
    """
    rows = [
        (*_spread(steps["whole.distance"]), *_spread(steps["whole.cosine"]))
        for steps in sentences
        if len(steps["whole.distance"]) > 1
    ]
    return pd.DataFrame(rows, columns=["distance", "distance_spread", "cosine", "cosine_spread"])


def _spread(values: np.ndarray) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values))


def covered_words(coverage: np.ndarray, targets: Sequence[str], sources: Sequence[str]) -> np.ndarray:
    """Turn the coverage of pieces into coverage of words, [T, I] each.

    Takes the value after the last piece of a target word, and the mean over the pieces of a source word. So attention
    added up differs from that of `past_future_gold`, which joins attention to words first: sums over the pieces of a
    source word, means over those of a target word.
    """
    values = np.asarray(coverage, dtype=np.float64)
    if values.shape != (len(targets), len(sources)):
        raise ValueError(f"A coverage {values.shape} is not of {len(targets)} target and {len(sources)} source pieces.")
    down = np.array(word_numbers(targets))
    last = np.flatnonzero(np.append(down[1:] != down[:-1], True))
    numbers = np.array(word_numbers(sources))
    across = np.eye(numbers[-1] + 1)[numbers]
    return values[last] @ (across / across.sum(axis=0))


def before_each_step(coverage: np.ndarray, start: float = 0.0) -> np.ndarray:
    """Coverage [T, I] before each step from coverage[T, I] after each step; `start` before the first."""
    values = np.asarray(coverage, dtype=np.float64)
    return np.concatenate([np.full_like(values[:1], start), values[:-1]])
