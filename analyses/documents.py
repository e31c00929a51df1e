"""Scores of whole documents: the score of a document is that of its segments' summed statistics.

Works on the statistics of `analyses.scores`; does not know what a document is, only which one each segment names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.scores import Statistics


def how_far(distance: int) -> str:
    """Where a sentence of the same document stands, in words: so many before, or if negative after."""
    return f"{distance} before" if distance > 0 else f"{-distance} after"


def by_document(statistics: Mapping[str, Statistics], documents: Sequence[str]) -> pd.DataFrame:
    """Each system's score of each document, in the order of the documents: system, document, n (segments), score.

    documents: the document of each segment. Raises ValueError where there are more or fewer than segments.
    """
    numbers, names = pd.factorize(np.asarray(documents, dtype=object))
    counts = np.bincount(numbers, minlength=len(names))
    tables = []
    for system, found in statistics.items():
        if len(found) != len(numbers):
            raise ValueError(
                f"{system} has {len(found)} segments but {len(numbers)} document ids were given: one for each segment."
            )
        sums = np.zeros((len(names), found.values.shape[1]), dtype=found.values.dtype)
        np.add.at(sums, numbers, found.values)
        tables.append(pd.DataFrame({"system": system, "document": names, "n": counts, "score": found.scores(sums)}))
    return pd.concat(tables, ignore_index=True)


def as_segments(lines: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Each document's lines as one, in the order of the documents: what a document-level score counts n-grams over, so
    that they reach over the ends of sentences (d-BLEU, Liu et al. 2020). Raises ValueError as `by_document` does."""
    if len(lines) != len(documents):
        raise ValueError(f"There are {len(lines)} lines but {len(documents)} document ids: one for each line.")
    joined: dict[str, list[str]] = {}
    for line, document in zip(lines, documents, strict=True):
        joined.setdefault(document, []).append(line)
    return [" ".join(own) for own in joined.values()]
