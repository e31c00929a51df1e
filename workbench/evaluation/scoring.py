"""Scores of runs on a test set: statistics from the run's cache, tables with intervals, comparisons with p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyses import meteor
from core_models.settings import nearest
from workbench.evaluation import bleu_cache
from workbench.store.runs import Run, RunError
from workbench.store.translations import Translations

if TYPE_CHECKING:
    import pandas as pd

    from analyses.scores import Statistics
    from analyses.significance import Comparison

METRICS = ("bleu", "chrf", "ter")
# As figures and tables print them; METEOR with its variant, since its variants are not comparable.
METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "ter": "TER", meteor.NAME: meteor.label()}


def metric_names(metrics: str | Sequence[str]) -> list[str]:
    """Metrics of a list, or of a text with commas, each once; raises RunError for an unknown one."""
    from analyses.scores import METRICS, OPTIONAL

    known = (*METRICS, *OPTIONAL)
    names = [name.strip() for name in metrics.split(",")] if isinstance(metrics, str) else metrics
    for name in names:
        if name not in known:
            raise RunError(f"there is no metric {name!r}; {nearest(name, known)}")
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Counting:
    """Settings of scoring: a preset of `analyses.scores`; one reference, counted from 1, or 0 for all together."""

    preset: str = "default"
    reference: int = 0


def references(runs: Mapping[str, Translations], which: int = 0) -> list[list[str]]:
    """The common references of all runs, or only number `which` (from 1).

    Raises RunError if references or sources differ, or this reference is missing.
    """
    first_name, first = next(iter(runs.items()))
    if first.test_set.references is None:
        raise RunError(f"{first_name}: the test set {first.test} has no references; scores need them")
    check_alike(runs)
    all_references = first.test_set.all_references
    if not 0 <= which <= len(all_references):
        raise RunError(f"{first.test} has {len(all_references)} references, from 1; there is no reference {which}")
    return [all_references[which - 1]] if which else all_references


def check_alike(runs: Mapping[str, Translations]) -> None:
    """Raise RunError if runs were tested on different versions of a test set."""
    first_name, first = next(iter(runs.items()))
    for name, translations in runs.items():
        test_set, first_test_set = translations.test_set, first.test_set
        if (test_set.sources, test_set.all_references) != (first_test_set.sources, first_test_set.all_references):
            raise RunError(
                f"{name} and {first_name} were tested on different versions of {first.test}; translate again"
            )


def statistics(run: Run, translations: Translations, metric: str, counting: Counting = Counting()) -> Statistics:
    """Segment statistics of a metric, from the run's cache if the same translations were scored before."""
    return statistics_of_all([run], {run.name: translations}, metric, counting=counting)[run.name]


def is_counted(run: Run, translations: Translations, metric: str, counting: Counting = Counting()) -> bool:
    """Return True if the run's cache has the `statistics` of a metric."""
    from analyses.scores import preset
    from analyses.statistics_cache import is_cached

    towards, options = references({run.name: translations}, counting.reference), preset(counting.preset).options(metric)
    return is_cached(run.statistics, translations.hypotheses, towards, metric, **options)


def statistics_of_all(
    runs: Sequence[Run],
    opened: Mapping[str, Translations],
    metric: str,
    processes: int = 1,
    counting: Counting = Counting(),
) -> dict[str, Statistics]:
    """`statistics` of every run; those not yet cached are extracted together in this number of processes."""
    from analyses.scores import preset
    from analyses.statistics_cache import cached_extract_all

    counted = runs if metric == "bleu" and counting == Counting() else ()
    stamps = [bleu_cache.stamp(run, opened[run.name].test) for run in counted]  # before the texts are read
    folders = {run.name: run.statistics for run in runs}
    hypotheses = {name: translations.hypotheses for name, translations in opened.items()}
    towards, options = references(opened, counting.reference), preset(counting.preset).options(metric)
    extracted = cached_extract_all(folders, hypotheses, towards, metric, processes, **options)
    for run, stamp in zip(counted, stamps, strict=True):
        bleu_cache.keep(run, opened[run.name].test, stamp, extracted[run.name].total)
    return extracted


def by_seed(runs: Sequence[Run], values: Mapping[str, Statistics]) -> dict[str, dict[int, Statistics]]:
    """Regroup statistics by run name to system -> training seed -> statistics.

    Raises RunError if two runs of a system have the same seed.
    """
    systems: dict[str, dict[int, Statistics]] = {}
    for run in runs:
        seeds, seed = systems.setdefault(run.system, {}), run.config.training.seed
        if seed in seeds:
            raise RunError(f"{run.name} is not the only run of {run.system} with seed {seed}; leave one out")
        seeds[seed] = values[run.name]
    return systems


def score_table(
    runs: Sequence[Run],
    test: str,
    metrics: str | Sequence[str] = METRICS,
    samples: int = 1000,
    processes: int = 1,
    counting: Counting = Counting(),
) -> pd.DataFrame:
    """system, metric, score, low, high (95% bootstrap), signature, n for every run and metric."""
    import pandas as pd

    from analyses.significance import bootstrap_intervals

    opened = {run.name: run.translations(test) for run in runs}
    rows = []
    for metric in metric_names(metrics):
        extracted = statistics_of_all(runs, opened, metric, processes, counting)
        intervals = bootstrap_intervals(extracted, samples)
        for run in runs:
            segment_statistics, interval = extracted[run.name], intervals[run.name]
            rows.append(
                {
                    "system": run.name,
                    "metric": segment_statistics.metric,
                    "score": interval.score,
                    "low": interval.low,
                    "high": interval.high,
                    "signature": segment_statistics.signature,
                    "n": len(segment_statistics),
                }
            )
    return pd.DataFrame(rows)


# Names of the tests of a difference; `bootstrap-sacrebleu` is the bootstrap with sacreBLEU's rule for p.
TESTS = ("bootstrap", "randomization", "sign", "bootstrap-sacrebleu")


def check_method(method: str) -> None:
    """Raise RunError for a test of differences that is none of TESTS."""
    if method not in TESTS:
        raise RunError(f"there is no test {method!r} of a difference; {nearest(method, TESTS)}")


def _tested(base: Statistics, systems: Mapping[str, Statistics], method: str) -> dict[str, Comparison]:
    """Each system against the baseline by one of TESTS; the bootstrap draws its resamples once for all."""
    from analyses import significance

    check_method(method)
    if method == "randomization":
        return {name: significance.approximate_randomization(base, system) for name, system in systems.items()}
    if method == "sign":
        return {name: significance.sign_test(base, system) for name, system in systems.items()}
    rule: significance.Rule = "sacrebleu" if method == "bootstrap-sacrebleu" else "interval"
    return significance.paired_bootstraps(base, systems, rule=rule)


def comparison_table(
    runs: Sequence[Run],
    test: str,
    baseline: str,
    method: str = "bootstrap",
    metrics: str | Sequence[str] = ("bleu",),
    counting: Counting = Counting(),
) -> pd.DataFrame:
    """Each run against the baseline: system, metric, score, delta, low, high (of the difference), p_value, p_holm.

    method: one of TESTS. Raises RunError.
    """
    import pandas as pd

    check_method(method)
    opened = {run.name: run.translations(test) for run in runs}
    if baseline not in opened:
        raise RunError(f"the baseline {baseline!r} is not among the runs compared: {', '.join(opened)}")
    extracted = (statistics_of_all(runs, opened, metric, counting=counting) for metric in metric_names(metrics))
    return pd.concat(
        [compare_statistics(by_run, baseline, method) for by_run in extracted] or [pd.DataFrame()], ignore_index=True
    )


def compare_statistics(statistics: Mapping[str, Statistics], baseline: str, method: str = "bootstrap") -> pd.DataFrame:
    """Each system's statistics against the baseline's under one metric: columns of `comparison_table`."""
    import pandas as pd

    from analyses import significance

    base = statistics[baseline]
    comparisons = _tested(base, {name: one for name, one in statistics.items() if name != baseline}, method)
    adjusted = significance.holm([comparison.p_value for comparison in comparisons.values()])
    return pd.DataFrame(
        {
            "system": name,
            "baseline": baseline,
            "metric": base.metric,
            "score": comparison.system_score,
            "delta": comparison.delta,
            "low": comparison.low,
            "high": comparison.high,
            "p_value": comparison.p_value,
            "p_holm": float(p),
            "method": comparison.method,
        }
        for (name, comparison), p in zip(comparisons.items(), adjusted, strict=True)
    )


def pair_table(
    runs: Sequence[Run], test: str, metric: str = "bleu", method: str = "bootstrap", counting: Counting = Counting()
) -> pd.DataFrame:
    """Every pair of runs under one metric, the better one of the two first, by `comparison_table`'s tests.

    Columns: system, other, metric, score, other_score, delta (score minus other_score), p_value, p_holm (corrected over
    all pairs), signature. Raises RunError for a single run.
    """
    import pandas as pd

    from analyses import significance

    if len(runs) < 2:
        raise RunError("a pair needs two runs; choose another one")
    extracted = statistics_of_all(runs, {run.name: run.translations(test) for run in runs}, metric, counting=counting)
    first = next(iter(extracted.values()))
    ranked = sorted(extracted, key=lambda name: extracted[name].total, reverse=first.higher_is_better)
    rows = []
    for position, other in enumerate(ranked[1:], start=1):
        better = {name: extracted[name] for name in ranked[:position]}
        for name, comparison in _tested(extracted[other], better, method).items():
            rows.append(
                {
                    "system": name,
                    "other": other,
                    "metric": first.metric,
                    "score": comparison.system_score,
                    "other_score": comparison.baseline_score,
                    "delta": comparison.delta,
                    "p_value": comparison.p_value,
                    "signature": first.signature,
                }
            )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=significance.holm(table["p_value"].to_numpy()))
