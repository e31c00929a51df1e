"""What PAST and FUTURE layers do along a translation (Zheng 2018), and coverage of source words by target words.

The states' own measures are a number a step: norms, cosines, log-probabilities, ranks. Here they are averaged over the
relative position; a rank becomes whether the right word stands first. Knows arrays and words, no system.
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
# Of each side and step t, which predicts word t, as the traces have them.
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
    """Means of every measure over the relative position t / T: measure, side, place, value, low, high (95 % bootstrap
    over sentences), n steps. Instead of ranks, whether they are 1 (measure "first")."""
    tables = []
    for name in sentences[0]:
        side, _, measure = name.rpartition(".")
        found = [np.asarray(one[name], dtype=np.float64) for one in sentences]
        if measure == "rank":
            measure, found = "first", [(own == 1).astype(np.float64) for own in found]
        table = along({side: found}, list(map(len, found)), bins, samples, seed)
        tables.append(table.assign(measure=measure))
    table = pd.concat(tables, ignore_index=True)
    return table[["measure", *(name for name in table if name != "measure")]]


def steadiness(sentences: Sequence[Steps]) -> pd.DataFrame:
    """How far PAST + FUTURE stays the same along each sentence of two steps or more, a row a sentence: distance, cosine
    (means over its steps of those from the source's summary, the distance in lengths of that summary) and
    distance_spread, cosine_spread (standard deviations)."""
    rows = [
        (*_spread(one["whole.distance"]), *_spread(one["whole.cosine"]))
        for one in sentences
        if len(one["whole.distance"]) > 1
    ]
    return pd.DataFrame(rows, columns=["distance", "distance_spread", "cosine", "cosine_spread"])


def _spread(values: np.ndarray) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values))


def covered_words(coverage: np.ndarray, targets: Sequence[str], sources: Sequence[str]) -> np.ndarray:
    """Coverage of pieces as coverage of words, [T, I] each: what stands after the last piece of a target word, and the
    mean over a source word's pieces."""
    values = np.asarray(coverage, dtype=np.float64)
    if values.shape != (len(targets), len(sources)):
        raise ValueError(f"A coverage {values.shape} is not of {len(targets)} target and {len(sources)} source pieces.")
    down = np.array(word_numbers(targets))
    last = np.flatnonzero(np.append(down[1:] != down[:-1], True))
    numbers = np.array(word_numbers(sources))
    across = np.eye(numbers[-1] + 1)[numbers]
    return values[last] @ (across / across.sum(axis=0))


def before_each_step(coverage: np.ndarray, start: float = 0.0) -> np.ndarray:
    """What stood before each step: coverage[T, I] after the steps, `start` before the first -> [T, I]."""
    values = np.asarray(coverage, dtype=np.float64)
    return np.concatenate([np.full_like(values[:1], start), values[:-1]])
