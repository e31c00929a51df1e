"""Word alignments as sets of links (source position, target position), and their error rate.

Weights, gold links and the maps from subword pieces to words are given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import pandas as pd

from analyses.scores import Shares

Link = tuple[int, int]
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))


def alignment_error_rate(
    predicted: Sequence[AbstractSet[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]] | None = None,
) -> float:
    """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over a whole corpus (Och and Ney 2003, Eq. 14), a fraction.

    Each argument holds one set of links (i, j) per sentence. Sure links count as possible, listed there or not; without
    `possible` all gold links are sure. NaN if there are neither predicted nor sure links.
    """
    agreed, linked = error_statistics(predicted, sure, possible).values.sum(axis=0)
    return float(1.0 - agreed / linked) if linked else float("nan")


def from_attention(weights: np.ndarray) -> set[Link]:
    """Link each target word to the source word with the highest weight (the first of equals).

    weights[target, source], without padding and without the end-of-sentence row. Returns {(source i, target j)}. Of
    pieces, join the weights to words before (`attention.to_words`), or the links after (`to_words`).
    """
    weights = np.asarray(weights)
    if weights.ndim != 2:
        raise ValueError(f"Attention weights must be [target, source], got shape {weights.shape}: average heads first.")
    return {(int(i), j) for j, i in enumerate(weights.argmax(axis=1))} if weights.size else set()


def above(weights: np.ndarray, threshold: float) -> set[Link]:
    """Every link whose weight is at least the threshold; weights[target, source] as in `from_attention`."""
    rows, columns = np.nonzero(np.asarray(weights) >= threshold)
    return {(int(i), int(j)) for j, i in zip(rows, columns, strict=True)}


def threshold_curve(
    weights: Sequence[np.ndarray],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    by_argmax: Sequence[set[Link]] | None = None,
) -> pd.DataFrame:
    """AER of links by threshold, and of argmax (threshold NaN, the last row): threshold, links, precision, recall, aer.

    Precision is over possible links, recall over sure links (Och and Ney 2003, Eq. 12 and 13). weights: of each
    sentence, between words, without </s> of the source. sure, possible: gold links, one set per sentence. by_argmax:
    the links of the last row where they are not `from_attention` of the weights, such as those of pieces.
    """
    links_by_threshold = [(threshold, [above(matrix, threshold) for matrix in weights]) for threshold in thresholds]
    links_by_threshold.append((float("nan"), list(by_argmax or map(from_attention, weights))))
    allowed = sure if possible is None else [ours | theirs for ours, theirs in zip(sure, possible, strict=True)]
    rows = []
    for threshold, links in links_by_threshold:
        n_links, n_sure = sum(map(len, links)), sum(map(len, sure))
        n_right = sum(len(ours & gold) for ours, gold in zip(links, allowed, strict=True))
        n_recalled = sum(len(ours & gold) for ours, gold in zip(links, sure, strict=True))
        precision = n_right / n_links if n_links else float("nan")
        recall = n_recalled / n_sure if n_sure else float("nan")
        rows.append((threshold, n_links, precision, recall, alignment_error_rate(links, sure, possible)))
    return pd.DataFrame(rows, columns=["threshold", "links", "precision", "recall", "aer"])


def to_words(links: Iterable[Link], source_words: Sequence[int], target_words: Sequence[int]) -> set[Link]:
    """Turn links between pieces into links between words: two words are linked if any of their pieces are.

    source_words[i], target_words[j]: the word number of each piece (`attention.word_numbers`). A target word may then
    have several links.
    """
    return {(source_words[i], target_words[j]) for i, j in links}


class ErrorStatistics(Shares):
    """Sufficient statistics of the AER, to be bucketed and resampled as scores are; scores are percent.

    values[sentences, 2]: the agreeing links |A ∩ S| + |A ∩ P| and all links |A| + |S|.
    """

    @property
    def higher_is_better(self) -> bool:
        return False

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return 100 * (1 - super().scores(sums))


def error_statistics(
    predicted: Sequence[AbstractSet[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]] | None = None,
) -> ErrorStatistics:
    """The statistics of `alignment_error_rate`, one row per sentence; the arguments are the same."""
    possible = sure if possible is None else possible
    if not len(predicted) == len(sure) == len(possible):
        raise ValueError(
            f"Alignments of {len(predicted)} (predicted), {len(sure)} (sure) and {len(possible)} (possible) sentences "
            "cannot be compared: give one set of links for each sentence."
        )
    rows = [
        (len(ours & certain) + len(ours & (allowed | certain)), len(ours) + len(certain))
        for ours, certain, allowed in zip(predicted, sure, possible, strict=True)
    ]
    return ErrorStatistics("aer", np.array(rows, dtype=np.int64).reshape(-1, 2), "AER, Och and Ney 2003")
