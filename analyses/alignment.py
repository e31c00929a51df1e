"""Word alignments as sets of links (source position, target position), and their error rate.

Does not know where weights or gold links come from; sub-word pieces become words through the maps the caller hands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

Link = tuple[int, int]


def alignment_error_rate(
    predicted: Sequence[AbstractSet[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]] | None = None,
) -> float:
    """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over a whole corpus (Och and Ney 2003, Eq. 14), a fraction.

    Each argument holds one set of links (i, j) a sentence. Sure links are possible ones too, listed there or not;
    without `possible` all gold links are sure. NaN where there are neither predicted nor sure links.
    """
    possible = sure if possible is None else possible
    if not len(predicted) == len(sure) == len(possible):
        raise ValueError(
            f"Alignments of {len(predicted)} (predicted), {len(sure)} (sure) and {len(possible)} (possible) sentences "
            "cannot be compared: give one set of links for each sentence."
        )
    agreed = linked = 0
    for ours, certain, allowed in zip(predicted, sure, possible, strict=True):
        agreed += len(ours & certain) + len(ours & (allowed | certain))
        linked += len(ours) + len(certain)
    return 1.0 - agreed / linked if linked else float("nan")


def from_attention(weights: np.ndarray) -> set[Link]:
    """One link for each target word, to the source word it attends to most; of equals the first.

    weights[target, source], without padding and without the end-of-sentence row. Returns {(source i, target j)}.
    """
    weights = np.asarray(weights)
    if weights.ndim != 2:
        raise ValueError(f"Attention weights must be [target, source], got shape {weights.shape}: average heads first.")
    return {(int(i), j) for j, i in enumerate(weights.argmax(axis=1))} if weights.size else set()


def to_words(links: Iterable[Link], source_words: Sequence[int], target_words: Sequence[int]) -> set[Link]:
    """Links between pieces as links between words: any link of their pieces links two words.

    source_words[i], target_words[j]: the word number of each piece.
    """
    return {(source_words[i], target_words[j]) for i, j in links}
