"""What a model thought of each output word: probability, entropy, rank; and what each of its layers would have said.

Tidy tables from arrays of one sentence, in nats; a rank of 1 is the most probable word. Does not know the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

MEASURES = ("log_prob", "entropy", "rank", "best_log_prob")


def table(tokens: Sequence[str], best: Sequence[str], measures: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A row a word: step (from 1), token, log_prob, probability, entropy, rank, best, best_log_prob, best_probability.

    tokens: the words written; best: what the model held most probable in their places; measures: MEASURES, [T] each.
    """
    found = pd.DataFrame({"step": np.arange(1, len(tokens) + 1), "token": list(tokens), "best": list(best)})
    for name in MEASURES:
        values = np.asarray(measures[name])
        if values.shape != (len(tokens),):
            raise ValueError(f"There are {len(tokens)} tokens, but {name} has the shape {values.shape}.")
        found[name] = values
    return found.assign(probability=np.exp(found["log_prob"]), best_probability=np.exp(found["best_log_prob"]))


def lens_table(
    tokens: Sequence[str], best: Sequence[Sequence[str]], measures: Mapping[str, np.ndarray], layers: int
) -> pd.DataFrame:
    """The columns of `table` for every layer, with `layer` (0: the embedding) and `name` in front.

    best [layer][T], measures [layer, T] each. `layers` is how many the decoder has: one more than those and the
    embedding is the output, which a mechanism has changed after the last layer.
    """
    names = ["embedding", *(f"layer {number}" for number in range(1, layers + 1)), "output"]
    if not layers + 1 <= len(best) <= len(names):
        raise ValueError(
            f"A decoder of {layers} layers has {layers + 1} or {layers + 2} rows in its lens: {len(best)}."
        )
    rows = [
        table(tokens, words, {name: measures[name][number] for name in MEASURES}).assign(
            layer=number, name=names[number]
        )
        for number, words in enumerate(best)
    ]
    found = pd.concat(rows, ignore_index=True)
    return found[["layer", "name", *(column for column in found if column not in ("layer", "name"))]]
