"""Human ratings of translations: means with intervals, differences between systems, agreement between raters.

A rating gives one translation a quality from 1 to 5, and counts its source words that are over-translated and
under-translated (Zheng 2018, Table 3; Zheng 2019, Table 3). Works on one table with one row per rating: rater,
sentence, system, quality, over, under (words), words (of the source).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from analyses.significance import DEFAULT_SEED, bootstrap_p, holm_within, percentile_interval, resampled_sums

COLUMNS = ("rater", "sentence", "system", "quality", "over", "under", "words")
QUALITIES = (1, 2, 3, 4, 5)  # from worst to best
MEASURES = ("quality", "over-translated (%)", "under-translated (%)")
Level = Literal["nominal", "ordinal", "interval"]


def whole(ratings: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    """The ratings of sentences for which the rater has rated every system; only these are comparable."""
    known = ratings[ratings["system"].isin(list(systems))]
    rated = known.groupby(["rater", "sentence"])["system"].transform("nunique")
    return known[rated == len(systems)].reset_index(drop=True)


def intervals(ratings: pd.DataFrame, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Scores by system and measure: system, measure, score, low, high (95 % bootstrap over sentences), n (sentences).

    Ratings of one sentence are averaged first, so that each sentence counts once. quality is the mean over sentences;
    over- and under-translation are the shares of all source words, in percent.
    """
    systems, sums, drawn = _resampled(ratings, samples, seed)
    scores, spread = _measures(sums), _measures(drawn)  # [systems, measures], [samples, systems, measures]
    rows = [
        (system, measure, float(scores[s, m]), *percentile_interval(spread[:, s, m]), len(set(ratings["sentence"])))
        for s, system in enumerate(systems)
        for m, measure in enumerate(MEASURES)
    ]
    return pd.DataFrame(rows, columns=["system", "measure", "score", "low", "high", "n"])


def differences(ratings: pd.DataFrame, baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """Each system minus the baseline on the same sentences: system, measure, difference, low, high, p_value, p_holm.

    low, high: 95 % of bootstrap resamples of sentences. p_value, two-sided: of the quality by Wilcoxon's signed-rank
    test (1945) of the sentences that differ, 1 where none does; of the shares, where a long sentence weighs more, by
    the bootstrap, so that it goes with the interval. Holm's correction runs over the systems of one measure. Raises
    ValueError if the baseline was not rated.
    """
    systems, sums, drawn = _resampled(ratings, samples, seed)
    if baseline not in systems:
        raise ValueError(f"the baseline {baseline!r} was not rated; rated were {', '.join(systems)}")
    base = systems.index(baseline)
    scores, spread = _measures(sums), _measures(drawn)
    by_sentence = _measures(_sentences(ratings)[1])  # [sentences, systems, measures]
    rows = []
    for m, measure in enumerate(MEASURES):
        for s, system in enumerate(systems):
            if s != base:
                difference = float(scores[s, m] - scores[base, m])
                resampled = spread[:, s, m] - spread[:, base, m]
                if measure == "quality":
                    p_value = _signed_rank(by_sentence[:, s, m] - by_sentence[:, base, m])
                else:
                    p_value = bootstrap_p(resampled)
                rows.append((system, measure, difference, *percentile_interval(resampled), p_value))
    table = pd.DataFrame(rows, columns=["system", "measure", "difference", "low", "high", "p_value"])
    return table.assign(p_holm=holm_within(table["p_value"], table["measure"]))


def agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """Agreement of raters: measure, alpha (Krippendorff's), level, raters, units (translations with 2+ raters).

    quality is ordinal, the shares of source words are intervals. alpha is NaN with fewer than two raters, and if all
    ratings are the same.
    """
    shares = ratings.assign(over=ratings["over"] / ratings["words"], under=ratings["under"] / ratings["words"])
    levels: tuple[Level, ...] = ("ordinal", "interval", "interval")
    rows = []
    for measure, column, level in zip(MEASURES, ("quality", "over", "under"), levels, strict=True):
        values = shares.pivot(index="rater", columns=["sentence", "system"], values=column).to_numpy(dtype=float)
        shared = int(((~np.isnan(values)).sum(axis=0) >= 2).sum())
        rows.append((measure, krippendorff_alpha(values, level), level, len(values), shared))
    return pd.DataFrame(rows, columns=["measure", "alpha", "level", "raters", "units"])


def krippendorff_alpha(values: np.ndarray, level: Level) -> float:
    """Krippendorff's alpha of values[raters, units], NaN for missing ratings (Krippendorff 2011).

    1 is full agreement, 0 chance agreement; NaN if no unit has two values or all values are the same.
    """
    domain = np.unique(values[~np.isnan(values)])
    frequencies = (
        np.stack([(values == value).sum(axis=0) for value in domain], axis=1) if len(domain) else np.zeros((0, 0))
    )
    counts = frequencies[frequencies.sum(axis=1) >= 2].astype(float)  # [units, values]
    weights = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = weights.T @ counts - np.diag(weights.sum(axis=0))
    totals = coincidences.sum(axis=1)
    if level == "nominal":
        distances = 1.0 - np.eye(len(domain))
    else:
        ranks = domain if level == "interval" else np.cumsum(totals) - totals / 2  # an ordinal value is its mid-rank
        distances = (ranks[:, None] - ranks[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distances).sum())
    if not expected:
        return float("nan")
    return 1.0 - float((coincidences * distances).sum()) * (float(totals.sum()) - 1) / expected


def _sentences(ratings: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """The systems, and means over raters [sentences, systems, (1, quality, over, under, words)].

    Raises ValueError if a system lacks a sentence.
    """
    if ratings.empty:
        raise ValueError("there are no ratings of all systems of a sentence yet; rate a sentence first")
    systems = list(dict.fromkeys(ratings["system"]))
    means = ratings.groupby(["sentence", "system"])[["quality", "over", "under", "words"]].mean()
    cells = pd.MultiIndex.from_product([sorted(set(ratings["sentence"])), systems])
    missing = [cell for cell in cells if cell not in means.index]
    if missing:
        raise ValueError(f"sentence {missing[0][0]} of {missing[0][1]} was not rated; leave the sentence out")
    values = means.reindex(cells).to_numpy().reshape(-1, len(systems), 4)
    return systems, np.concatenate([np.ones_like(values[..., :1]), values], axis=2)


def _resampled(ratings: pd.DataFrame, samples: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The systems, sums over all sentences [systems, 5] and over each resample [samples, systems, 5]."""
    systems, cells = _sentences(ratings)
    drawn = resampled_sums(cells.reshape(len(cells), -1), samples, seed)
    return systems, cells.sum(axis=0), drawn.reshape(samples, len(systems), 5)


def _measures(sums: np.ndarray) -> np.ndarray:
    """The measures [...] of sums[..., (n, quality, over, under, words)] -> [..., measures]."""
    count, quality, over, under, words = np.moveaxis(sums, -1, 0)
    return np.stack([quality / count, 100 * over / words, 100 * under / words], axis=-1)


def _signed_rank(difference: np.ndarray) -> float:
    difference = np.round(difference, 9)  # 10/3 - 3 and 13/3 - 4 must be a tie despite floating point
    differing = difference[difference != 0]  # given zeros, SciPy takes a normal approximation for small samples too
    return float(wilcoxon(differing).pvalue) if len(differing) else 1.0
