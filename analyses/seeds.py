"""Several trainings of one system: mean and spread over seeds, and intervals that cover both seeds and sentences.

A system's score varies with the seed it was trained with and with the sentences it was tested on. All seeds of all
systems translate the same sentences, so the two are crossed, and their errors add in quadrature. An interval around the
mean over n seeds reaches

    sqrt((t s / sqrt(n))^2 + b^2)

to either side: s is the standard deviation between seeds, t Student's quantile with n - 1 degrees of freedom, and b how
far the percentile interval of `analyses.significance` reaches when sentences are resampled and the seeds are fixed. The
p-value inverts this interval. Differences are paired by seed and by sentence. With one seed the interval is that of its
sentences alone, as `form` says.

Why this form: Student's t on the total is twice as wide, resampling seeds too is too narrow (three seeds cover the
truth 75 % of the time if seeds cause the spread), and Satterthwaite's degrees of freedom stay below 95 %;
`analyses.calibration` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analyses.scores import Statistics
from analyses.significance import (
    DEFAULT_SEED,
    METHODS,
    bootstrap_p,
    check_pair,
    holm,
    level_of_cut,
    percentile_interval,
    resampled_sums,
)

BySeed = Mapping[int, Statistics]  # seed -> statistics of the system trained with it, on one test set
SENTENCES, BOTH = "sentences", "seeds and sentences"  # the sources of variance an interval covers
METHOD = "bootstrap of sentences, t of seeds"  # of a comparison over two seeds or more
ADDITIVITY = ["system", "baseline", "metric", "gain", "gains_of_parts", "delta", "low", "high", "p_value", "seeds"]


@dataclass(frozen=True)
class OverSeeds:
    """A system's mean score, its spread (standard deviation between seeds, n - 1; NaN for one) and its interval.

    form: the sources of variance, SENTENCES for one seed and BOTH for more.
    """

    score: float
    spread: float
    low: float
    high: float
    seeds: int
    form: str


@dataclass(frozen=True)
class SeedComparison:
    """System minus baseline over the seeds that both have: mean difference, interval, two-sided probability.

    form: as in `OverSeeds`; seed_error: the standard error of the mean between seeds, 0 of one.
    """

    score: float
    delta: float
    low: float
    high: float
    p_value: float
    seeds: int
    form: str
    seed_error: float


@dataclass(frozen=True)
class _Spread:
    """The components of an interval around `center`.

    resampled: the means over the seeds on resampled sentences, ascending; error: the standard error of the mean between
    seeds; seeds: their number.
    """

    center: float
    resampled: np.ndarray
    error: float
    seeds: int

    @classmethod
    def of(cls, per_seed: np.ndarray, resampled: np.ndarray) -> _Spread:
        error = float(per_seed.std(ddof=1)) / np.sqrt(len(per_seed)) if len(per_seed) > 1 else 0.0
        return cls(float(per_seed.mean()), np.sort(resampled[~np.isnan(resampled)]), error, len(per_seed))

    @property
    def form(self) -> str:
        return BOTH if self.seeds > 1 else SENTENCES

    def interval(self, level: float) -> tuple[float, float]:
        low, high = percentile_interval(self.resampled, level)
        if self.seeds == 1:
            return low, high
        reach = float(student.ppf((1 + level) / 2, self.seeds - 1)) * self.error
        return self.center - np.hypot(reach, self.center - low), self.center + np.hypot(reach, high - self.center)

    def p_value(self) -> float:
        """The smallest level alpha at which the interval of 1 - alpha excludes zero."""
        if self.seeds == 1:
            return bootstrap_p(self.resampled)
        count = len(self.resampled)
        if not count or np.isnan(self.center):
            return np.nan
        # An interval that cuts off k resamples reaches to the k-th; the rest of the distance to zero is for the seeds.
        ends = self.resampled if self.center > 0 else -self.resampled[::-1]
        cuts = np.arange((count + 1) // 2)
        beyond = ends[cuts] > 0
        if not beyond.any():
            return 1.0
        distance = abs(self.center)
        left = np.sqrt(np.maximum(distance**2 - (distance - ends[cuts[beyond]]) ** 2, 0))
        of_seeds = 2 * student.sf(left / self.error, self.seeds - 1) if self.error else 0.0
        of_sentences = np.array([level_of_cut(cut, count) for cut in cuts[beyond]])
        return float(min(1.0, np.maximum(of_sentences, of_seeds).min()))


def resampled_means(
    statistics: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, dtype: type = np.float64
) -> np.ndarray:
    """The mean score over the seeds on resampled sentences: [samples]. NaN if a resample has no score.

    The draws depend only on samples, seed and the number of sentences, so systems that share these are paired.
    """
    if not statistics:
        raise ValueError("There are no seeds to resample: the system has no scored run.")
    numbers = sorted(statistics)
    ordered = [statistics[number] for number in numbers]
    for number, other in zip(numbers[1:], ordered[1:], strict=True):
        check_pair(ordered[0], other, (f"seed {numbers[0]}", f"seed {number}"))
    sums = resampled_sums(np.hstack([run.values for run in ordered]), samples, seed)  # [samples, seeds * k]
    return ordered[0].scores(sums.reshape(samples, len(ordered), -1).astype(dtype)).mean(axis=1)


def over_seeds(statistics: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95) -> OverSeeds:
    """Mean, spread and interval of one system; raises ValueError if its seeds were tested differently."""
    totals = np.array([run.total for run in statistics.values()])
    estimate = _Spread.of(totals, resampled_means(statistics, samples, seed))
    spread = float(totals.std(ddof=1)) if len(totals) > 1 else np.nan
    return OverSeeds(estimate.center, spread, *estimate.interval(level), estimate.seeds, estimate.form)


def compare_over_seeds(
    baseline: BySeed, system: BySeed, samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95
) -> SeedComparison:
    """The difference of two systems over their common seeds, paired by seed and by sentence.

    With one seed, interval and p-value are those of `significance.paired_bootstrap`, float32 rounding included. Raises
    ValueError if they have no seed in common or were tested on different sentences.
    """
    return compare_at_levels(baseline, system, [level], samples, seed)[0]


def compare_at_levels(
    baseline: BySeed, system: BySeed, levels: Sequence[float], samples: int = 1000, seed: int = DEFAULT_SEED
) -> list[SeedComparison]:
    """`compare_over_seeds` with intervals at several levels, from the same resamples."""
    common = sorted(baseline.keys() & system.keys())
    if not common:
        raise ValueError(
            f"The baseline has the seeds {_listed(baseline)} and the system {_listed(system)}: none in common to "
            "compare. Run both with one seed at least."
        )
    estimated = _sum([(1, system), (-1, baseline)], common, samples, seed)
    return [_comparison(*estimated, level) for level in levels]


def compare_gains(
    first: tuple[BySeed, BySeed],
    second: tuple[BySeed, BySeed],
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
) -> SeedComparison:
    """How much larger a system's gain is on the second of two texts: each is (baseline, system), paired by seed.

    The texts have no sentence in common, so their resamples are drawn apart. The score is the gain on the second.
    Raises ValueError if the four have no seed in common, or a text's two were tested on different sentences.
    """
    common = sorted(set.intersection(*(set(by_seed) for by_seed in (*first, *second))))
    if not common:
        raise ValueError("The two texts have no seed in common. Run both with one seed at least.")
    (first_gains, first_resampled), (gains, resampled) = (
        _signed([(1, system), (-1, base)], common, samples, seed + text)
        for text, (base, system) in enumerate((first, second))
    )
    estimate = _Spread.of(gains - first_gains, resampled - first_resampled)
    return _comparison(float(gains.mean()), estimate, level)


def gain_differences(
    first: Mapping[str, BySeed],
    second: Mapping[str, BySeed],
    baseline: str,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """How much larger the gain of each system over the baseline is on the second of two texts (`compare_gains`).

    Over the seeds that system and baseline have on both texts; systems without one are left out. Columns: system, n
    (sentences of the second text), seeds, delta, low, high, seed_error.
    """
    rows = []
    for system, by_seed in second.items():
        before, after = ((text.get(baseline, {}), text.get(system, {})) for text in (first, second))
        if system == baseline or not set.intersection(*(set(one) for one in (*before, *after))):
            continue
        found = compare_gains(before, after, samples, seed)
        interval = (found.delta, found.low, found.high, found.seed_error)
        rows.append((system, len(next(iter(by_seed.values()))), found.seeds, *interval))
    return pd.DataFrame(rows, columns=["system", "n", "seeds", "delta", "low", "high", "seed_error"])


def weighted_sum(
    terms: Sequence[tuple[int, BySeed]], samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95
) -> SeedComparison:
    """The sum of several systems' scores, each times its weight, over their common seeds, paired by seed and sentence.

    terms: (weight, system). delta is the sum; the score is that of the first system. Raises ValueError if they have no
    seed in common or were tested on different sentences.
    """
    common = sorted(set.intersection(*(set(by_seed) for _, by_seed in terms)))
    if not common:
        raise ValueError("The systems have no seed in common. Run all of them with one seed at least.")
    return _comparison(*_sum(terms, common, samples, seed), level)


def _sum(signed: Sequence[tuple[int, BySeed]], common: Sequence[int], samples: int, seed: int) -> tuple[float, _Spread]:
    """The score of the first system, and the sum of all with their signs, paired by seed and by sentence."""
    score = float(np.mean([signed[0][1][number].total for number in common]))
    return score, _Spread.of(*_signed(signed, common, samples, seed))


def _signed(
    signed: Sequence[tuple[int, BySeed]], common: Sequence[int], samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of systems with signs: of each seed [seeds], and its mean over seeds on resampled sentences [samples]."""
    first = signed[0][1]
    for number in common:
        for _, by_seed in signed[1:]:
            check_pair(first[number], by_seed[number])
    totals = [[sign * by_seed[number].total for number in common] for sign, by_seed in signed]
    resampled = [
        sign * resampled_means({number: by_seed[number] for number in common}, samples, seed, np.float32).astype(float)
        for sign, by_seed in signed
    ]
    return np.sum(totals, axis=0), np.sum(resampled, axis=0)


def _comparison(score: float, estimate: _Spread, level: float) -> SeedComparison:
    low, high = estimate.interval(level)
    p_value, seeds = estimate.p_value(), estimate.seeds
    return SeedComparison(score, estimate.center, low, high, p_value, seeds, estimate.form, estimate.error)


def additivity_table(
    statistics: Mapping[str, BySeed], baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Whether gains add: the gain of each combination A+B over the baseline, and what it has beyond those of A and B.

    delta is score(A+B) - score(baseline) less the same of each part, over the seeds that all of them have; combinations
    without such a seed are left out. Columns: `ADDITIVITY`.
    """
    rows = []
    for system, by_seed in statistics.items():
        parts = [statistics.get(name, {}) for name in system.split("+")]
        base = statistics.get(baseline, {})
        common = sorted(set(by_seed).intersection(base, *parts))
        if len(parts) < 2 or not common:
            continue
        less_parts = [(1, by_seed), *((-1, part) for part in parts), (len(parts) - 1, base)]
        whole, beyond = (
            _comparison(*_sum(signed, common, samples, seed), 0.95)
            for signed in ([(1, by_seed), (-1, base)], less_parts)
        )
        row = (system, baseline, by_seed[common[0]].metric, whole.delta, whole.delta - beyond.delta)
        rows.append((*row, beyond.delta, beyond.low, beyond.high, beyond.p_value, beyond.seeds))
    return pd.DataFrame(rows, columns=ADDITIVITY)


def score_table(statistics: Mapping[str, BySeed], samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """One row per system with its mean score over seeds.

    Columns: system, metric, score, low, high, signature, n (sentences), seeds, spread, form (as in `OverSeeds`).
    """
    rows = []
    for system, by_seed in statistics.items():
        result, first = over_seeds(by_seed, samples, seed), next(iter(by_seed.values()))
        rows.append(
            {
                "system": system,
                "metric": first.metric,
                "score": result.score,
                "low": result.low,
                "high": result.high,
                "signature": first.signature,
                "n": len(first),
                "seeds": result.seeds,
                "spread": result.spread,
                "form": result.form,
            }
        )
    columns = ["system", "metric", "score", "low", "high", "signature", "n", "seeds", "spread", "form"]
    return pd.DataFrame(rows, columns=columns)


def comparison_table(
    statistics: Mapping[str, BySeed], baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """Each other system against the baseline; systems without a seed in common with it are left out.

    Columns: system, baseline, metric, score, delta, low, high, p_value, p_holm, method, seeds, form.
    """
    base = statistics.get(baseline, {})
    comparisons = {
        system: compare_over_seeds(base, by_seed, samples, seed)
        for system, by_seed in statistics.items()
        if system != baseline and base.keys() & by_seed.keys()
    }
    adjusted = holm([comparison.p_value for comparison in comparisons.values()])
    rows = [
        {
            "system": system,
            "baseline": baseline,
            "metric": next(iter(base.values())).metric,
            "score": comparison.score,
            "delta": comparison.delta,
            "low": comparison.low,
            "high": comparison.high,
            "p_value": comparison.p_value,
            "p_holm": float(p_holm),
            "method": METHODS["interval"] if comparison.seeds == 1 else METHOD,
            "seeds": comparison.seeds,
            "form": comparison.form,
        }
        for (system, comparison), p_holm in zip(comparisons.items(), adjusted, strict=True)
    ]
    columns = ["system", "baseline", "metric", "score", "delta", "low", "high", "p_value", "p_holm", "method", "seeds"]
    return pd.DataFrame(rows, columns=[*columns, "form"])


def beside_baseline(
    statistics: Mapping[str, BySeed], baseline: str, samples: int = 1000, seed: int = DEFAULT_SEED
) -> pd.DataFrame:
    """`score_table` with the difference of each system to the baseline.

    Added columns: delta, delta_low, delta_high, p_value, p_holm; NaN for the baseline and for systems without a seed in
    common with it.
    """
    comparisons = comparison_table(statistics, baseline, samples, seed)
    comparisons = comparisons.rename(columns={"low": "delta_low", "high": "delta_high"})
    columns = ["system", "delta", "delta_low", "delta_high", "p_value", "p_holm"]
    return score_table(statistics, samples, seed).merge(comparisons[columns], on="system", how="left")


def _listed(statistics: BySeed) -> str:
    return ", ".join(map(str, sorted(statistics))) or "(none)"
