"""Adequacy measures from the links of a frozen aligner: CDR, under-translation and over-translation.

Over- and under-translation are proxies of what humans count, never the same measure. Works on links (source position,
target position) and words. The caller chooses the aligner; it must be the same for all systems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyses.alignment import Link
from analyses.significance import percentile_interval, resampled_sums

Links = Sequence[AbstractSet[Link]]
MACRO = "CDR (macro)"
UNDER = "under (proxy, %)"
OVER = "over (proxy, %)"


class CoverageDifference(NamedTuple):
    """The ratio over all covered source words (micro), and its mean over sentences (macro)."""

    micro: float
    macro: float


def coverage(links: AbstractSet[Link]) -> set[int]:
    """The source positions that are linked to any word."""
    return {i for i, _ in links}


def covered_share(reference: AbstractSet[int], hypothesis: AbstractSet[int]) -> float:
    """The CDR of one sentence from the source positions that each side covers; 1 if the reference covers nothing."""
    return 1.0 - len(reference - hypothesis) / len(reference) if reference else 1.0


def coverage_difference_ratio(reference_links: Links, hypothesis_links: Links) -> CoverageDifference:
    """Coverage difference ratio, 1 - |C_ref - C_hyp| / |C_ref| (set difference; Kong et al. 2019).

    The share of the source words covered by the reference that the hypothesis covers too. Sentences whose reference
    covers nothing are left out; NaN if all are.
    """
    table = _covered(reference_links, hypothesis_links)
    table = table[table["covered"] > 0]
    if table.empty:
        return CoverageDifference(float("nan"), float("nan"))
    micro = 1.0 - table["missed"].sum() / table["covered"].sum()
    return CoverageDifference(float(micro), float((1.0 - table["missed"] / table["covered"]).mean()))


def by_sentence(
    reference_links: Sequence[Links],
    hypothesis_links: Links,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    hypotheses: Sequence[Sequence[str]],
) -> pd.DataFrame:
    """Count covered, missed and repeated source words, one row per sentence.

    Columns: words (of the source), covered (by a reference), missed (of these), under (missed / covered, NaN if nothing
    is covered), repeated (source words), over (repeated / words, NaN without words).

    reference_links, references: of each reference, one or several. repeated: source words linked to two or more
    identical words of the hypothesis, more often than in any reference.
    """
    union_links: list[set[Link]] = [set().union(*of_sentence) for of_sentence in zip(*reference_links, strict=True)]
    table = _covered(union_links, hypothesis_links)
    table.insert(0, "words", [len(source) for source in sources])
    table["under"] = table["missed"] / table["covered"].where(table["covered"] > 0)
    repeated_positions = map(
        repeated, hypothesis_links, zip(*reference_links, strict=True), hypotheses, zip(*references, strict=True)
    )
    table["repeated"] = [len(positions) for positions in repeated_positions]
    table["over"] = table["repeated"] / table["words"].where(table["words"] > 0)
    return table


def repeated(
    hypothesis_links: AbstractSet[Link],
    reference_links: Iterable[AbstractSet[Link]],
    hypothesis: Sequence[str],
    references: Iterable[Sequence[str]],
) -> set[int]:
    """The source positions whose translation the hypothesis repeats more often than each of the references."""
    times, most = _linked_words(hypothesis_links, hypothesis), Counter[tuple[int, str]]()
    for links, reference in zip(reference_links, references, strict=True):
        most |= _linked_words(links, reference)
    return {i for (i, word), count in times.items() if count >= 2 and most[i, word] < count}


def _linked_words(links: AbstractSet[Link], words: Sequence[str]) -> Counter[tuple[int, str]]:
    """How often each source position is linked to each word."""
    return Counter((i, words[j]) for i, j in links)


def _covered(reference_links: Links, hypothesis_links: Links) -> pd.DataFrame:
    """covered: source words that the reference covers; missed: those of them that the hypothesis does not."""
    pairs = [
        (coverage(reference), coverage(hypothesis))
        for reference, hypothesis in zip(reference_links, hypothesis_links, strict=True)
    ]
    return pd.DataFrame(
        [(len(reference), len(reference - hypothesis)) for reference, hypothesis in pairs],
        columns=["covered", "missed"],
    )


def intervals(sentences: pd.DataFrame, samples: int = 1000) -> pd.DataFrame:
    """The measures of a test set with 95 % bootstrap intervals over its sentences: measure, score, low, high.

    Measures: CDR over all words (micro) and as a mean over the sentences whose reference covers any (macro); the proxy
    of under-translation in percent of the source words that the reference covers, that of over-translation in percent
    of all source words.
    """
    has_coverage = sentences["covered"] > 0
    counts = np.column_stack(
        [
            sentences[["missed", "covered", "repeated", "words"]],
            (1 - sentences["missed"] / sentences["covered"]).where(has_coverage, 0.0),
            has_coverage,
        ]
    )
    resampled = resampled_sums(counts, samples)
    rows = []
    for (measure, score), shares in zip(
        _shares(counts.sum(axis=0, keepdims=True)).items(), _shares(resampled).values(), strict=True
    ):
        rows.append((measure, float(score[0]), *percentile_interval(shares)))
    return pd.DataFrame(rows, columns=["measure", "score", "low", "high"])


def _shares(sums: np.ndarray) -> dict[str, np.ndarray]:
    """The measures [n] of sums[n, 6]; NaN if nothing is covered.

    The six sums: missed, covered, repeated, words, the ratios of the sentences, the sentences that have a ratio.
    """
    missed, covered, repeated, words, ratios, ratable = sums.T
    with np.errstate(invalid="ignore"):
        under, over, macro = missed / covered, repeated / words, ratios / ratable
    return {"CDR": 1.0 - under, MACRO: macro, UNDER: 100 * under, OVER: 100 * over}
