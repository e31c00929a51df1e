"""Significance tests between systems: paired bootstrap, approximate randomization, sign test, Holm's correction.

Works on the sufficient statistics of `analyses.scores`. Resampling is a matrix of counts times the statistics, a block
of resamples at a time, so it needs 32 MB besides the statistics for any number of resamples. Several systems share one
draw, as drawing takes most of the time. Under the same seed, resamples are those of sacreBLEU's `PairedTest`, and so is
the p-value of approximate randomization where no shuffle has just the observed difference. We count such ties,
sacreBLEU does not: where few segments differ most of the extreme shuffles tie, and with three of them its p is 0.0001
instead of 0.25.

The bootstrap's p and intervals are sacreBLEU's only with `rule="sacrebleu"`. Its p counts how often |d| - mean |d|
exceeds the difference; it is neither one- nor two-sided, and below 0.05 in about 12 % of the cases in which two systems
are equally good. Ours inverts the interval of the difference: with 40 resamples or more p is below 0.05 exactly if the
95 % interval excludes zero. That interval reaches one resample farther than sacreBLEU's, so it is not too narrow for
few resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import binomtest

from analyses.scores import Statistics

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SEED = 12345  # sacreBLEU's
_BLOCK_CELLS = 4_000_000  # counts held at once: 32 MB as float64
_DRAWN_TOGETHER = 32_000  # segments drawn by one call: fewer calls where test sets are small
# Differences of corpus scores below this are rounding, not a change: one segment in a million moves BLEU by more.
_TIE = 1e-11

# Rule for the intervals and p-value of a paired bootstrap: p from the interval of the difference, or as in sacreBLEU.
Rule = Literal["interval", "sacrebleu"]
METHODS: dict[Rule, str] = {"interval": "paired bootstrap", "sacrebleu": "paired bootstrap as in sacreBLEU"}


@dataclass(frozen=True)
class Comparison:
    """System minus baseline under one test; scores in the metric's unit, two-sided p-values.

    p is not two-sided under sacreBLEU's rule (`bootstrap_p_as_sacrebleu`). low, high: 95 % interval of delta (NaN if
    the test has none). better, worse, equal: sentences, sign test only.
    """

    method: str
    metric: str
    baseline_score: float
    system_score: float
    delta: float
    p_value: float
    samples: int
    low: float = np.nan
    high: float = np.nan
    better: int | None = None
    worse: int | None = None
    equal: int | None = None


@dataclass(frozen=True)
class Interval:
    """A score with its bootstrap mean and interval."""

    score: float
    mean: float
    low: float
    high: float
    level: float


def paired_bootstrap(
    baseline: Statistics,
    system: Statistics,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    indices: np.ndarray | None = None,
    rule: Rule = "interval",
) -> Comparison:
    """Paired bootstrap resampling (Koehn 2004) on sacreBLEU's resamples.

    indices[samples, segments]: the resampled segments themselves, in place of samples and seed. rule: intervals and
    p-value by `percentile_interval` and `bootstrap_p`, or by sacreBLEU's rules.
    """
    return paired_bootstraps(baseline, {"system": system}, samples, seed, indices, rule)["system"]


def paired_bootstraps(
    baseline: Statistics,
    systems: Mapping[str, Statistics],
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    indices: np.ndarray | None = None,
    rule: Rule = "interval",
) -> dict[str, Comparison]:
    """`paired_bootstrap` of each system against one baseline, all on the same resamples, which are drawn once."""
    for system in systems.values():
        check_pair(baseline, system)
    of_baseline, *of_systems = resampled_together([baseline, *systems.values()], samples, seed, indices)
    return {
        name: _paired(baseline, system, of_baseline, sums, rule)
        for (name, system), sums in zip(systems.items(), of_systems, strict=True)
    }


def _paired(
    baseline: Statistics, system: Statistics, baseline_sums: np.ndarray, system_sums: np.ndarray, rule: Rule
) -> Comparison:
    # sacreBLEU keeps float32 statistics in this test; the same rounding gives the same ties, and so the same p-values.
    of_baseline = baseline.scores(baseline_sums.astype(np.float32))
    of_system = system.scores(system_sums.astype(np.float32))
    baseline_score, system_score = baseline.total, system.total
    delta = system_score - baseline_score
    differences = of_system.astype(np.float64) - of_baseline
    interval = percentile_interval if rule == "interval" else sacrebleu_interval
    low, high = interval(differences)
    if rule == "interval" and len(system) < 2:  # all resamples are the same
        low = high = p_value = np.nan
    elif rule == "sacrebleu":
        same = identical(baseline, system)
        p_value = 1.0 if same else bootstrap_p_as_sacrebleu(of_system - of_baseline, delta)
    else:
        p_value = bootstrap_p(differences)
    return Comparison(
        method=METHODS[rule],
        metric=system.metric,
        baseline_score=baseline_score,
        system_score=system_score,
        delta=delta,
        p_value=p_value,
        samples=len(system_sums),
        low=low,
        high=high,
    )


def approximate_randomization(
    baseline: Statistics, system: Statistics, trials: int = 10_000, seed: int = DEFAULT_SEED
) -> Comparison:
    """Two-sided approximate randomization (Riezler and Maxwell 2005): swap outputs of random segments; no interval.

    p: (shuffles with at least the observed difference + 1) / (trials + 1), NaN if there is no difference to observe.
    """
    check_pair(baseline, system)
    generator = np.random.default_rng(seed)
    baseline_sum, system_sum = baseline.values.sum(axis=0), system.values.sum(axis=0)
    advantage = (baseline.values - system.values).astype(np.float64)
    distances = []
    # One random word gives 32 booleans: blocks of a multiple of 32 trials draw the stream that one big call would.
    for rows in _blocks(trials, len(baseline), multiple=32):
        is_swapped = generator.integers(2, size=(rows, len(baseline)), dtype=bool)
        moved = is_swapped.astype(np.float64) @ advantage
        distances.append(np.abs(system.scores(system_sum + moved) - baseline.scores(baseline_sum - moved)))
    baseline_score, system_score = baseline.total, system.total
    p_value = exceeding_share(np.concatenate(distances), abs(baseline_score - system_score), ties=True)
    return Comparison(
        method="approximate randomization",
        metric=system.metric,
        baseline_score=baseline_score,
        system_score=system_score,
        delta=system_score - baseline_score,
        p_value=1.0 if identical(baseline, system) else p_value,
        samples=trials,
    )


def sign_test(baseline: Statistics, system: Statistics) -> Comparison:
    """The sign test of Collins, Koehn and Kučerová (2005, section 3.4), which the DLA and FC papers report.

    For each sentence the system's output replaces the baseline's, and the corpus score gets better, worse or stays;
    p is the two-sided binomial probability of better against worse.
    """
    check_pair(baseline, system)
    replaced = baseline.values.sum(axis=0) + (system.values - baseline.values)
    change = baseline.scores(replaced) - baseline.scores(baseline.values.sum(axis=0))
    change = change if baseline.higher_is_better else -change
    better, worse = int((change > _TIE).sum()), int((change < -_TIE).sum())
    baseline_score, system_score = baseline.total, system.total
    return Comparison(
        method="sign test",
        metric=system.metric,
        baseline_score=baseline_score,
        system_score=system_score,
        delta=system_score - baseline_score,
        p_value=float(binomtest(better, better + worse).pvalue) if better + worse else 1.0,
        samples=len(baseline),
        better=better,
        worse=worse,
        equal=len(baseline) - better - worse,
    )


def bootstrap_interval(
    statistics: Statistics, samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95
) -> Interval:
    """The corpus score with its bootstrap mean and percentile interval."""
    return bootstrap_intervals({"system": statistics}, samples, seed, level)["system"]


def bootstrap_intervals(
    statistics: Mapping[str, Statistics], samples: int = 1000, seed: int = DEFAULT_SEED, level: float = 0.95
) -> dict[str, Interval]:
    """`bootstrap_interval` of several systems of one test set, under any metrics, on resamples drawn once."""
    sums_by_system = resampled_together(list(statistics.values()), samples, seed)
    intervals = {}
    for (name, scored), sums in zip(statistics.items(), sums_by_system, strict=True):
        resampled = scored.scores(sums)
        intervals[name] = Interval(scored.total, _mean(resampled), *percentile_interval(resampled, level), level)
    return intervals


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's (1979) adjusted p-values, in the order given; NaN entries are no tests and stay NaN."""
    p_values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full_like(p_values, np.nan)
    tests = np.flatnonzero(~np.isnan(p_values))
    order = tests[np.argsort(p_values[tests], kind="stable")]
    steps = (len(order) - np.arange(len(order))) * p_values[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def holm_within(p_values: pd.Series, families: Any) -> pd.Series:
    """`holm` over the p-values of each family; families: what `Series.groupby` takes."""
    return p_values.groupby(families, sort=False).transform(lambda family: holm(family.to_numpy())).astype(float)


def resampled_sums(
    values: np.ndarray, samples: int = 1000, seed: int = DEFAULT_SEED, indices: np.ndarray | None = None
) -> np.ndarray:
    """The statistics summed over each bootstrap resample: values[n, k] -> float64 [samples, k].

    The columns of several systems may be concatenated to share the resamples. indices[samples, n] replaces the random
    draw, which is sacreBLEU's under the same seed.
    """
    n, values = len(values), np.asarray(values, dtype=np.float64)
    if n == 0:
        raise ValueError("There are no segments to resample.")
    if indices is not None:
        indices = np.asarray(indices)
        if indices.ndim != 2:
            raise ValueError(f"Resample indices must be [samples, segments], got shape {indices.shape}.")
        if indices.size and not 0 <= indices.min() <= indices.max() < n:
            raise ValueError(f"Resample indices must be from 0 to {n - 1}, got {indices.min()} to {indices.max()}.")
    generator = np.random.default_rng(seed)
    total = samples if indices is None else len(indices)
    sums, start = np.empty((total, values.shape[1])), 0
    counts = np.empty((min(total, _rows_at_once(n)), n))
    together = max(1, _DRAWN_TOGETHER // n)
    for rows in _blocks(total, n):
        for first in range(0, rows, together):
            part = slice(first, min(first + together, rows))
            if indices is None:  # one random stream throughout, so the draws equal sacreBLEU's single `choice` of all
                picked = generator.integers(n, size=(part.stop - first, n))
            else:
                picked = indices[start + first : start + part.stop]
            counts[part] = _counts(picked, n)
        np.matmul(counts[:rows], values, out=sums[start : start + rows])
        start += rows
    return sums


def _counts(picked: np.ndarray, n: int) -> np.ndarray:
    """How often each segment was picked in each resample: picked [rows, any] of 0 to n - 1 -> [rows, n]."""
    rows = len(picked)
    return np.bincount((picked + n * np.arange(rows)[:, None]).ravel(), minlength=rows * n).reshape(rows, n)


def resampled_together(
    statistics: Sequence[Statistics],
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    indices: np.ndarray | None = None,
) -> list[np.ndarray]:
    """`resampled_sums` of several systems of one test set, under any metrics, on the same resamples, drawn once."""
    if len({len(scored) for scored in statistics}) != 1:
        raise ValueError(
            f"Systems of {', '.join(str(len(scored)) for scored in statistics)} segments cannot share resamples: "
            "they must be of the same test set."
        )
    side_by_side = np.hstack([scored.values for scored in statistics], dtype=np.float64)
    ends = np.cumsum([scored.values.shape[1] for scored in statistics])[:-1]
    return np.split(resampled_sums(side_by_side, samples, seed, indices), ends, axis=1)


def ratio_intervals(
    numerators: np.ndarray, denominators: np.ndarray, samples: int = 1000, seed: int = DEFAULT_SEED
) -> np.ndarray:
    """95 % intervals of ratios of sums, by a bootstrap of sentences: [sentences, k] each -> [k, 2].

    Resamples in which a denominator sums to zero are left out; NaN if all are.
    """
    sums = resampled_sums(np.column_stack([numerators, denominators]), samples, seed)
    above, below = np.split(sums, 2, axis=1)
    ratios = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return np.array([percentile_interval(ratio) for ratio in ratios.T])


def mean_interval(values: np.ndarray, samples: int = 1000, seed: int = DEFAULT_SEED) -> tuple[float, float]:
    """95 % interval of the mean of a value of each sentence [sentences], by a bootstrap of sentences."""
    ((low, high),) = ratio_intervals(values[:, None], np.ones((len(values), 1)), samples, seed)
    return float(low), float(high)


def percentile_interval(resampled: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of n resampled scores [samples]: from the k-th smallest to the k-th largest.

    k is the largest number with 2 k / (n + 1) < 1 - level. So if the n resamples and the observation come from one
    distribution, it misses in at most 1 - level of the cases. It needs n >= 2 / (1 - level) resamples (40 at 95 %);
    with fewer it is their range. Resamples without a score (NaN: an empty denominator) are left out; NaN if none has
    one.
    """
    ordered = _known(resampled)
    if not len(ordered):
        return np.nan, np.nan
    cut = max(0, int(np.ceil(round((len(ordered) + 1) * (1.0 - level) / 2.0, 9))) - 2)
    return _between(ordered, cut)


def sacrebleu_interval(resampled: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of resampled scores [samples] by sacreBLEU's `estimate_ci`: cuts off n (1 - level) / 2.

    NaN as in `percentile_interval`.
    """
    ordered = _known(resampled)
    if not len(ordered):
        return np.nan, np.nan
    return _between(ordered, int(round(len(ordered) * (1.0 - level) / 2.0, 9)))


def _between(ordered: np.ndarray, cut: int) -> tuple[float, float]:
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def _known(resampled: np.ndarray) -> np.ndarray:
    """Resampled scores in ascending order, without NaN."""
    return np.sort(resampled[~np.isnan(resampled)])


def _mean(resampled: np.ndarray) -> float:
    known = _known(resampled)
    return float(known.mean()) if len(known) else np.nan


def bootstrap_p(differences: np.ndarray) -> float:
    """The two-sided p-value of resampled differences [samples], by inverting `percentile_interval`.

    It is the smallest level alpha at which the interval of 1 - alpha excludes zero, so p < alpha exactly if that
    interval does, where alpha is at least 2 / n with n resamples; p is at least 2 / (n + 1). Resamples without a
    difference (NaN) are left out; NaN if none has one.
    """
    ordered = _known(differences)
    if not len(ordered):
        return np.nan
    beyond_zero = min(int((ordered <= 0).sum()), int((ordered >= 0).sum()))
    return min(1.0, level_of_cut(beyond_zero, len(ordered)))


def level_of_cut(cut: int, samples: int) -> float:
    """The smallest level alpha at which `percentile_interval` cuts off `cut` resamples at each end."""
    return 2 * (cut + 1) / (samples + 1)


def bootstrap_p_as_sacrebleu(differences: np.ndarray, difference: float) -> float:
    """The p-value of a paired bootstrap by sacreBLEU's rule, to compare with reported numbers.

    How often |d| - mean |d| of the resampled differences d [samples] exceeds the observed difference; below 0.05 in
    about 12 % of the cases if the systems are equally good. Resamples without a difference are left out.
    """
    distances = np.abs(differences[~np.isnan(differences)])
    return exceeding_share(distances - distances.mean(), abs(difference)) if len(distances) else np.nan


def exceeding_share(statistics: np.ndarray, difference: float, ties: bool = False) -> float:
    """The p-value of a resampling test, (exceeding + 1) / (samples + 1), as in multeval and sacreBLEU.

    exceeding: how many of the statistics exceed the observed difference or, with ties, equal it. NaN if the difference
    is NaN.
    """
    if np.isnan(difference):
        return np.nan
    rounding = -_TIE if ties else _TIE
    return (int((statistics > difference + rounding).sum()) + 1) / (len(statistics) + 1)


def identical(baseline: Statistics, system: Statistics) -> bool:
    """True if two systems have the same statistics, and a score; then p is 1.

    Counting the statistics that exceed a difference of zero would give p = 1 / (samples + 1).
    """
    return np.array_equal(baseline.values, system.values) and not np.isnan(system.total)


def _blocks(total: int, width: int, multiple: int = 1) -> Iterator[int]:
    rows = _rows_at_once(width, multiple)
    for start in range(0, total, rows):
        yield min(rows, total - start)


def _rows_at_once(width: int, multiple: int = 1) -> int:
    return max(multiple, _BLOCK_CELLS // max(width, 1) // multiple * multiple)


def check_pair(
    baseline: Statistics, system: Statistics, names: tuple[str, str] = ("the baseline", "the system")
) -> None:
    """Raise ValueError if two systems were scored differently or have different numbers of segments.

    names: what the error calls them.
    """
    if baseline.signature != system.signature or baseline.metric != system.metric:
        raise ValueError(
            f"Two outputs were scored differently: {baseline.metric} {baseline.signature} for {names[0]}, "
            f"{system.metric} {system.signature} for {names[1]}. Score both with the same options."
        )
    if len(baseline) != len(system):
        raise ValueError(
            f"Two outputs have different numbers of segments: {names[0]} {len(baseline)}, {names[1]} {len(system)}. "
            "A paired test needs the same test set."
        )
