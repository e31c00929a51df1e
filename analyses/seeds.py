"""Several trainings of one system: mean and spread over seeds, and intervals that carry both seeds and sentences.

A system's score varies with the seed it was trained with and with the sentences it was tested on. All seeds of all
systems translate the same sentences, so the two levels are crossed: each resample draws seeds with replacement and,
independently, sentences with replacement, and takes the mean over the drawn seeds of the corpus score of the drawn
sentences (the product or "pigeonhole" bootstrap: McCullagh 2000, Bernoulli 6(2); Owen 2007, Annals of Applied
Statistics 1(2); resampling at both levels of grouped data: Davison and Hinkley 1997, section 3.8). The draw of
sentences is that of `analyses.significance`, the same for every seed and system, and seeds of the same number are drawn
together, so differences are paired at both levels. With one seed all of it is the ordinary paired bootstrap.

How far to trust it: the sentence level is sound, the seed level is coarse. n seeds resampled vary (n - 1) / n as much
as n seeds drawn anew, and the percentiles know nothing of Student's t, so intervals from few seeds are too narrow
wherever seeds differ much: `seed_level_coverage` says what is left of a nominal 95 %. Does not know what a run is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from analyses.scores import Statistics
from analyses.significance import (
    DEFAULT_SEED,
    bootstrap_p,
    check_pair,
    holm,
    identical,
    percentile_interval,
    resampled_sums,
)

BySeed = Mapping[int, Statistics]  # seed -> what the system trained with it made of the one test set


@dataclass(frozen=True)
class OverSeeds:
    """A system's mean score, its spread (standard deviation between seeds, n - 1; NaN for one) and its interval."""

    score: float
    spread: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class SeedComparison:
    """System minus baseline over the seeds that both have: mean difference, interval, two-sided probability."""

    score: float
    delta: float
    low: float
    high: float
    p_value: float
    seeds: int


def resampled_means(
    statistics: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, dtype: type = np.float64
) -> np.ndarray:
    """The mean score over drawn seeds on drawn sentences, one for each resample: [samples].

    The draws depend only on samples, seed, the number of seeds and of sentences: equal for systems that share these.
    """
    ordered = [statistics[number] for number in sorted(statistics)]
    if not ordered:
        raise ValueError("There are no seeds to resample: the system has no scored run.")
    for other in ordered[1:]:
        check_pair(ordered[0], other)
    sums = resampled_sums(np.hstack([one.values for one in ordered]), samples, seed)  # [samples, seeds * k]
    scores = ordered[0].scores(sums.reshape(samples, len(ordered), -1).astype(dtype))  # [samples, seeds]
    return (scores * _seed_counts(len(ordered), samples, seed)).sum(axis=1) / len(ordered)


def over_seeds(statistics: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95) -> OverSeeds:
    """Mean, spread and two-level interval of one system; raises ValueError where seeds were tested differently."""
    totals = np.array([one.total for one in statistics.values()])
    low, high = percentile_interval(resampled_means(statistics, samples, seed), level)
    spread = float(totals.std(ddof=1)) if len(totals) > 1 else np.nan
    return OverSeeds(float(totals.mean()), spread, low, high, len(totals))


def compare_over_seeds(
    baseline: BySeed, system: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95
) -> SeedComparison:
    """The two-level paired bootstrap of a difference, over the seeds that both systems have.

    With one seed interval and p-value are those of `significance.paired_bootstrap`, float32 rounding and p-value rule
    included. Raises ValueError where they have no seed in common or were tested on different sentences.
    """
    common = sorted(baseline.keys() & system.keys())
    if not common:
        raise ValueError(
            f"The baseline has the seeds {_listed(baseline)} and the system {_listed(system)}: none in common to "
            "compare. Run both with one seed at least."
        )
    pairs = [(baseline[number], system[number]) for number in common]
    for pair in pairs:
        check_pair(*pair)
    of_baseline, of_system = (
        resampled_means({number: own[number] for number in common}, samples, seed, np.float32)
        for own in (baseline, system)
    )
    differences = of_system - of_baseline
    delta = float(np.mean([one.total - base.total for base, one in pairs]))
    low, high = percentile_interval(differences, level)
    same = all(identical(*pair) for pair in pairs)
    return SeedComparison(
        score=float(np.mean([one.total for _, one in pairs])),
        delta=delta,
        low=low,
        high=high,
        p_value=1.0 if same else bootstrap_p(differences, delta),
        seeds=len(common),
    )


def score_table(statistics: Mapping[str, BySeed], samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """A row a system: system, metric, score (mean over seeds), low, high, signature, n (sentences), seeds, spread."""
    rows = []
    for system, by_seed in statistics.items():
        found, first = over_seeds(by_seed, samples, seed), next(iter(by_seed.values()))
        rows.append(
            {
                "system": system,
                "metric": first.metric,
                "score": found.score,
                "low": found.low,
                "high": found.high,
                "signature": first.signature,
                "n": len(first),
                "seeds": found.seeds,
                "spread": found.spread,
            }
        )
    columns = ["system", "metric", "score", "low", "high", "signature", "n", "seeds", "spread"]
    return pd.DataFrame(rows, columns=columns)


def comparison_table(
    statistics: Mapping[str, BySeed], baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Each other system against the baseline: system, baseline, metric, score, delta, low, high, p_value, p_holm,
    method, seeds. Systems without a seed in common with the baseline are left out."""
    base = statistics.get(baseline, {})
    found = {
        system: compare_over_seeds(base, by_seed, samples, seed)
        for system, by_seed in statistics.items()
        if system != baseline and base.keys() & by_seed.keys()
    }
    adjusted = holm([one.p_value for one in found.values()])
    rows = [
        {
            "system": system,
            "baseline": baseline,
            "metric": next(iter(base.values())).metric,
            "score": one.score,
            "delta": one.delta,
            "low": one.low,
            "high": one.high,
            "p_value": one.p_value,
            "p_holm": float(p_holm),
            "method": "paired bootstrap" if one.seeds == 1 else "two-level bootstrap",
            "seeds": one.seeds,
        }
        for (system, one), p_holm in zip(found.items(), adjusted, strict=True)
    ]
    columns = ["system", "baseline", "metric", "score", "delta", "low", "high", "p_value", "p_holm", "method", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def beside_baseline(
    statistics: Mapping[str, BySeed], baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """`score_table` with each system's difference to the baseline: delta, delta_low, delta_high, p_value, p_holm (NaN
    of the baseline, and of systems without a seed in common with it)."""
    apart = comparison_table(statistics, baseline, samples, seed)
    apart = apart.rename(columns={"low": "delta_low", "high": "delta_high"})
    columns = ["system", "delta", "delta_low", "delta_high", "p_value", "p_holm"]
    return score_table(statistics, samples, seed).merge(apart[columns], on="system", how="left")


def seed_level_coverage(seeds: int, level: float = 0.95) -> float:
    """How often an interval of a nominal level holds the truth where seeds alone make the spread (normal, n seeds).

    Where one seed alone fills a tail (n <= 3 at 95 %), the interval runs from the least to the greatest of the seeds,
    and misses a median when all lie on one side of it: 1 - 2^(1-n). Otherwise Student's t at the bootstrap's width.
    """
    if seeds < 2:
        return 0.0
    if seeds ** float(-seeds) > (1 - level) / 2:
        return 1 - 2.0 ** (1 - seeds)
    width = norm.ppf((1 + level) / 2) * np.sqrt((seeds - 1) / seeds)
    return float(2 * t.cdf(width, df=seeds - 1) - 1)


def _seed_counts(seeds: int, samples: int, seed: int) -> np.ndarray:
    """How often each seed is drawn: [samples, seeds]; a stream of its own, so the sentences are those of one seed."""
    return np.random.default_rng([seed, 1]).multinomial(seeds, np.full(seeds, 1 / seeds), size=samples)


def _listed(statistics: BySeed) -> str:
    return ", ".join(map(str, sorted(statistics))) or "(none)"
