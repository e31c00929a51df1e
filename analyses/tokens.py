"""Probability, entropy and rank of each output word, of the model's prediction and of each layer's (logit lens).

Tidy tables from the arrays of one sentence, in nats; rank 1 is the most probable word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

MEASURES = ("log_prob", "entropy", "rank", "best_log_prob")


def table(tokens: Sequence[str], best: Sequence[str], measures: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """One row per word: its probability, entropy and rank, and the most probable word instead.

    Columns: step (from 1), token, log_prob, probability, entropy, rank, best, best_log_prob, best_probability. tokens:
    the output words; best: the model's most probable words at their positions; measures: MEASURES, [T] each.
    """
    rows = pd.DataFrame({"step": np.arange(1, len(tokens) + 1), "token": list(tokens), "best": list(best)})
    for name in MEASURES:
        values = np.asarray(measures[name])
        if values.shape != (len(tokens),):
            raise ValueError(f"There are {len(tokens)} tokens, but {name} has the shape {values.shape}.")
        rows[name] = values
    return rows.assign(probability=np.exp(rows["log_prob"]), best_probability=np.exp(rows["best_log_prob"]))


def lens_table(
    tokens: Sequence[str], best: Sequence[Sequence[str]], measures: Mapping[str, np.ndarray], layers: int
) -> pd.DataFrame:
    """The columns of `table` for every layer, with `layer` (0: the embedding) and `name` in front.

    best [layer][T], measures [layer, T] each. layers: number of decoder layers. A row after the embedding and the
    layers is the output, which a mechanism has changed after the last layer.
    """
    names = ["embedding", *(f"layer {number}" for number in range(1, layers + 1)), "output"]
    if not layers + 1 <= len(best) <= len(names):
        raise ValueError(
            f"A decoder of {layers} layers has {layers + 1} or {layers + 2} rows in its lens: {len(best)}."
        )
    tables = [
        table(tokens, words, {name: measures[name][number] for name in MEASURES}).assign(
            layer=number, name=names[number]
        )
        for number, words in enumerate(best)
    ]
    joined = pd.concat(tables, ignore_index=True)
    return joined[["layer", "name", *(column for column in joined if column not in ("layer", "name"))]]
