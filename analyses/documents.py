"""Scores of whole documents: the score of a document is that of its segments' summed statistics.

Works on the statistics of `analyses.scores` and a document name for each segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.scores import Statistics


def how_far(distance: int) -> str:
    """A distance within a document in words: "2 before", or "2 after" if negative."""
    return f"{distance} before" if distance > 0 else f"{-distance} after"


def by_document(statistics: Mapping[str, Statistics], documents: Sequence[str]) -> pd.DataFrame:
    """The score of each system on each document, in document order: system, document, n (segments), score.

    documents: the document of each segment. Raises ValueError if there are more or fewer than segments.
    """
    numbers, names = pd.factorize(np.asarray(documents, dtype=object))
    counts = np.bincount(numbers, minlength=len(names))
    tables = []
    for system, scored in statistics.items():
        if len(scored) != len(numbers):
            raise ValueError(
                f"{system} has {len(scored)} segments but {len(numbers)} document ids were given: one for each segment."
            )
        sums = np.zeros((len(names), scored.values.shape[1]), dtype=scored.values.dtype)
        np.add.at(sums, numbers, scored.values)
        tables.append(pd.DataFrame({"system": system, "document": names, "n": counts, "score": scored.scores(sums)}))
    return pd.concat(tables, ignore_index=True)


def as_segments(lines: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Join the lines of each document, in document order, for document-level scores (d-BLEU, Liu et al. 2020).

    n-grams then cross the ends of sentences. Raises ValueError as `by_document` does.
    """
    if len(lines) != len(documents):
        raise ValueError(f"There are {len(lines)} lines but {len(documents)} document ids: one for each line.")
    joined: dict[str, list[str]] = {}
    for line, document in zip(lines, documents, strict=True):
        joined.setdefault(document, []).append(line)
    return [" ".join(document_lines) for document_lines in joined.values()]
