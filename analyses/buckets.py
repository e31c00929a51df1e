"""Scores by bucket of segments, with bootstrap bands and paired differences corrected over all comparisons.

A bucket holds the segments whose length lies in (low, high], whose words have some frequency, or that share a label.
Works on the statistics of `analyses.scores`, and on lengths as statistics. The caller chooses how lengths and
frequencies are counted (source or reference, words or pieces); the caption should say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analyses.scores import Shares, Statistics
from analyses.seeds import BySeed, compare_at_levels, compare_gains
from analyses.significance import DEFAULT_SEED, holm, paired_bootstraps, percentile_interval, resampled_together
from analyses.words import bucket_labels

# Inner edges of the presets. "tens": of Zheng 2019, Figure 5, and for Duan 2020, Figure 2, which has six groups without
# their edges and whose text speaks of sentences longer than 30. "short": ours.
PRESETS: dict[str, tuple[float, ...]] = {
    "tens": (10, 20, 30, 40, 50),
    "short": (5, 10, 15, 20, 25),
}
FORMER_PRESETS = {"gdr": "tens", "fc-six": "tens"}
LENGTH_METRICS = ("length-ratio", "output-length")
# Rows of `differences_over_seeds` beside those of the buckets: the least difference of all buckets, the least but one
# or two, and by how much that of the last bucket (the longest) is above that of the first.
LEAST, LEAST_BUT_ONE, LEAST_BUT_TWO, LAST_LESS_FIRST = "least", "least but one", "least but two", "last - first"
LEAST_ROWS = (LEAST, LEAST_BUT_ONE, LEAST_BUT_TWO)
DIFFERENCES = ["system", "bucket", "low_edge", "high_edge", "n", "seeds", "delta", "low", "high", "seed_error"]
_OTHER, _NO_LABEL = "(other)", "(none)"


class LengthStatistics(Shares):
    """Lengths as statistics, to be bucketed and compared as scores are.

    values[segments, 2]: output words and their divisor, which is the number of reference words for `length-ratio` and 1
    for `output-length` (a mean).
    """


def length_statistics(
    output: Sequence[int] | np.ndarray, reference: Sequence[int] | np.ndarray, metric: str = "length-ratio"
) -> LengthStatistics:
    """The lengths of a system's output [segments] and of the reference as statistics of one of LENGTH_METRICS."""
    if metric not in LENGTH_METRICS:
        raise ValueError(f"Unknown length metric {metric!r}: choose one of {', '.join(LENGTH_METRICS)}.")
    if len(output) != len(reference):
        raise ValueError(f"There are {len(output)} output lengths but {len(reference)} reference lengths.")
    against = np.asarray(reference) if metric == "length-ratio" else np.ones(len(output), dtype=np.int64)
    return LengthStatistics(metric, np.column_stack([output, against]), f"{metric}, words between spaces")


@dataclass(frozen=True, eq=False)
class Buckets:
    """Inner edges, ascending, and each segment's bucket number [segments]: bucket b is (edges[b - 1], edges[b]].

    names: of the buckets, if they are not named by their edges; labels have names and no edges.
    """

    edges: tuple[float, ...]
    numbers: np.ndarray
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names) or len(self.edges) + 1

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """(low, high] of each bucket, from 0 to infinity; NaN for labels."""
        if self.names and not self.edges:
            return [(np.nan, np.nan)] * len(self.names)
        outer = (0.0, *map(float, self.edges), np.inf)
        return list(itertools.pairwise(outer))

    @property
    def labels(self) -> list[str]:
        if self.names:
            return list(self.names)
        return [f"({low:g},{'∞)' if np.isinf(high) else f'{high:g}]'}" for low, high in self.bounds]

    def rows(self, bucket: int) -> np.ndarray:
        return np.flatnonzero(self.numbers == bucket)


def by_length(lengths: Sequence[int] | np.ndarray, edges: Sequence[float] | np.ndarray) -> np.ndarray:
    """The bucket number of each length [n]: 0 up to and including edges[0], …, len(edges) above the last edge.

    An empty segment (length 0) is in the first bucket. Raises ValueError unless the edges ascend and are above 0.
    """
    inner = np.asarray(edges, dtype=np.float64)
    if len(inner) and (inner[0] <= 0 or (np.diff(inner) <= 0).any()):
        raise ValueError(f"Bucket edges must ascend and be above 0, got {inner.tolist()}.")
    return np.searchsorted(inner, np.asarray(lengths), side="left").astype(np.int64)


def from_edges(lengths: Sequence[int] | np.ndarray, edges: Sequence[float] | np.ndarray) -> Buckets:
    """Buckets with the given inner edges."""
    return Buckets(tuple(float(edge) for edge in edges), by_length(lengths, edges))


def preset(lengths: Sequence[int] | np.ndarray, name: str) -> Buckets:
    """Buckets with the edges of a preset, by its name or a former one (see PRESETS)."""
    name = FORMER_PRESETS.get(name, name)
    if name not in PRESETS:
        raise ValueError(f"Unknown bucket preset {name!r}: choose one of {', '.join(PRESETS)}.")
    return from_edges(lengths, PRESETS[name])


def equal_width(lengths: Sequence[int] | np.ndarray, width: float) -> Buckets:
    """Buckets of equal width, as many as the longest segment needs."""
    if width <= 0:
        raise ValueError(f"A bucket's width must be above 0, got {width}.")
    return from_edges(lengths, np.arange(width, np.max(lengths), width))


def quantiles(lengths: Sequence[int] | np.ndarray, k: int) -> Buckets:
    """Up to k buckets of about equal size; fewer where many segments share one length."""
    if k < 1:
        raise ValueError(f"The number of quantile buckets must be at least 1, got {k}.")
    edges = np.unique(np.quantile(lengths, np.arange(1, k) / k, method="inverted_cdf"))
    return from_edges(lengths, edges[(edges > 0) & (edges < np.max(lengths))])


def by_frequency(frequencies: Sequence[int] | np.ndarray, edges: Sequence[int] = (1, 5, 10, 100, 1000)) -> Buckets:
    """Buckets of whole frequencies, each from its low edge to below its high edge: 0, 1–4, 5–9, …, ≥1000."""
    named = from_edges(np.asarray(frequencies), [edge - 0.5 for edge in edges])
    return replace(named, names=tuple(bucket_labels(edges)))


def by_label(labels: Sequence[str], most: int = 12) -> Buckets:
    """One bucket per label, the most frequent first (equals by name); beyond `most`, the rest share one.

    Segments without a label (an empty one) are "(none)".
    """
    named = pd.Series([label or _NO_LABEL for label in labels], dtype="str")
    counts = named.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    names = counts.index.tolist()
    if len(names) > most:
        names = [*names[: most - 1], _OTHER]
    number_of = {name: number for number, name in enumerate(names)}
    return Buckets((), np.array([number_of.get(name, len(names) - 1) for name in named], dtype=np.int64), tuple(names))


def scores(
    statistics: Mapping[str, Statistics],
    buckets: Buckets,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    extra: Mapping[str, Sequence[int] | np.ndarray] | None = None,
    reference_lengths: Sequence[int] | np.ndarray | None = None,
    baseline: str | None = None,
) -> pd.DataFrame:
    """The score of each system in each bucket with its 95 % bootstrap interval, and the lengths of its output.

    extra: output lengths per segment by system; reference_lengths: per segment. Without them BLEU's own token counts
    are used (other metrics: NaN). baseline: the system of the first rows. Columns: system, bucket, low_edge, high_edge,
    n, score, low, high, mean_output_length, mean_reference_length, length_ratio; NaN in an empty bucket, and as the
    interval of one segment.
    """
    systems = _ordered(statistics, buckets, baseline)
    rows = []
    for bucket, members, bands in _bands(statistics, systems, buckets, samples, seed):
        for system in systems:
            lengths = _lengths(statistics[system], (extra or {}).get(system), reference_lengths, members)
            part = statistics[system].subset(members)
            score = part.total if len(members) else np.nan
            band = percentile_interval(bands[system]) if len(members) > 1 else (np.nan, np.nan)
            bounds = buckets.bounds[bucket]
            rows.append((system, buckets.labels[bucket], *bounds, len(members), score, *band, *lengths))
    columns = ["system", "bucket", "low_edge", "high_edge", "n", "score", "low", "high"]
    table = pd.DataFrame(rows, columns=[*columns, "mean_output_length", "mean_reference_length"])
    table["length_ratio"] = table.mean_output_length / table.mean_reference_length
    return _by_system(table, systems)


def paired_differences(
    statistics: Mapping[str, Statistics],
    buckets: Buckets,
    baseline: str,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """Each other system minus the baseline in each bucket, by paired bootstrap.

    Columns: system, bucket, low_edge, high_edge, n, delta, low, high, p_value, p_holm. Holm's correction runs over all
    rows: every bucket of every system is one test of the same family.
    """
    systems = [system for system in _ordered(statistics, buckets, baseline) if system != baseline]
    rows = []
    for bucket, (label, bounds) in enumerate(zip(buckets.labels, buckets.bounds, strict=True)):
        members = buckets.rows(bucket)
        parts = {system: statistics[system].subset(members) for system in (baseline, *systems)}
        of_baseline = parts.pop(baseline)
        results = paired_bootstraps(of_baseline, parts, samples, seed) if len(members) else {}
        for system in systems:
            result = results.get(system)
            outcome = (result.delta, result.low, result.high, result.p_value) if result else (np.nan,) * 4
            rows.append((system, label, *bounds, len(members), *outcome))
    columns = ["system", "bucket", "low_edge", "high_edge", "n", "delta", "low", "high", "p_value"]
    table = _by_system(pd.DataFrame(rows, columns=columns), systems)
    return table.assign(p_holm=holm(table.p_value.to_numpy()))


def differences_over_seeds(
    statistics: Mapping[str, BySeed],
    buckets: Buckets,
    baseline: str,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
) -> pd.DataFrame:
    """Each other system minus the baseline in each bucket, over the seeds that both have, and what they say together.

    Intervals of a bucket are of that bucket alone. The last rows of a system:

    - LEAST holds for the least true difference, above 0 if the system's score is higher in every bucket: better, but by
      a metric such as TER worse. Its interval begins at the buckets' lowest lower end.
    - LEAST_BUT_ONE and LEAST_BUT_TWO, above 0 if it is higher in every bucket but one, or two, at most. Which ones is
      not known before, so an interval begins at the lowest lower end but one (two) of intervals with half (a third of)
      the chance of error (Benjamini & Heller 2008: a partial conjunction).
    - All three end at the lowest upper end, or the lowest but one (two), of intervals that hold for all buckets
      together (Bonferroni).
    - LAST_LESS_FIRST: the difference of the last bucket less that of the first (`seeds.compare_gains`).

    Empty buckets have no row; of one bucket alone there is only LEAST. Columns: `DIFFERENCES`; seed_error, of a mean
    difference alone, is its standard error between seeds.
    """
    held = [number for number in range(len(buckets)) if len(buckets.rows(number))]
    rows: list[dict[str, object]] = []
    for system, by_seed in statistics.items() if held else ():
        if system == baseline or not by_seed.keys() & statistics[baseline].keys():
            continue
        texts = [
            (_subsets(statistics[baseline], members), _subsets(by_seed, members)) for members in map(buckets.rows, held)
        ]
        parts = sorted({1, 2, 3, len(held)})  # that the chance of error is cut into
        levels = [1 - (1 - level) / number for number in parts]
        by_text = [compare_at_levels(*text, levels, samples, seed) for text in texts]
        found = dict(zip(parts, zip(*by_text, strict=True), strict=True))
        for number, one in zip(held, found[1], strict=True):
            low_edge, high_edge = buckets.bounds[number]
            place = {"bucket": buckets.labels[number], "low_edge": low_edge, "high_edge": high_edge}
            size = {"n": len(buckets.rows(number)), "seeds": one.seeds}
            interval = {"delta": one.delta, "low": one.low, "high": one.high, "seed_error": one.seed_error}
            rows.append({"system": system, **place, **size, **interval})
        of_all = {"system": system, "n": len(buckets.numbers), "seeds": max(one.seeds for one in found[1])}
        for left_out, name in enumerate(LEAST_ROWS[: len(held)]):
            ends = {
                "delta": sorted(one.delta for one in found[1])[left_out],
                "low": sorted(one.low for one in found[left_out + 1])[left_out],
                "high": sorted(one.high for one in found[len(held)])[left_out],
            }
            rows.append({**of_all, "bucket": name, **ends})
        if len(held) > 1:
            more = compare_gains(texts[0], texts[-1], samples, seed, level)
            interval = {"delta": more.delta, "low": more.low, "high": more.high, "seed_error": more.seed_error}
            rows.append({**of_all, "bucket": LAST_LESS_FIRST, **interval})
    return pd.DataFrame(rows, columns=DIFFERENCES)


def _subsets(by_seed: BySeed, members: np.ndarray) -> BySeed:
    return {seed: statistics.subset(members) for seed, statistics in by_seed.items()}


def _bands(statistics: Mapping[str, Statistics], systems: list[str], buckets: Buckets, samples: int, seed: int):
    """Yield each bucket's number, its segments and the scores of all systems on the same resamples."""
    for bucket in range(len(buckets)):
        members = buckets.rows(bucket)
        if not len(members):
            yield bucket, members, {}
            continue
        parts = {system: statistics[system].subset(members) for system in systems}
        sums = resampled_together(list(parts.values()), samples, seed)
        resampled = {name: part.scores(part_sums) for (name, part), part_sums in zip(parts.items(), sums, strict=True)}
        yield bucket, members, resampled


def _lengths(
    statistics: Statistics,
    output: Sequence[int] | np.ndarray | None,
    reference: Sequence[int] | np.ndarray | None,
    members: np.ndarray,
) -> tuple[float, float]:
    """Mean output and reference length over a bucket; BLEU's statistics begin with its own two token counts."""
    bleu_counts = statistics.values[:, :2].T if statistics.metric == "bleu" else (None, None)
    lengths_of = [
        given if given is not None else bleu_lengths
        for given, bleu_lengths in zip((output, reference), bleu_counts, strict=True)
    ]
    empty = not len(members)
    mean_output, mean_reference = (
        np.nan if lengths is None or empty else float(np.asarray(lengths)[members].mean()) for lengths in lengths_of
    )
    return mean_output, mean_reference


def _ordered(statistics: Mapping[str, Statistics], buckets: Buckets, baseline: str | None) -> list[str]:
    if baseline is not None and baseline not in statistics:
        raise ValueError(f"The baseline {baseline!r} is not among the systems: {', '.join(statistics)}.")
    for system, segments in statistics.items():
        if len(segments) != len(buckets.numbers):
            raise ValueError(
                f"System {system!r} has {len(segments)} segments but the buckets were made for {len(buckets.numbers)}: "
                "both must be the same test set."
            )
    return sorted(statistics, key=lambda system: system != baseline) if baseline else list(statistics)


def _by_system(table: pd.DataFrame, systems: list[str]) -> pd.DataFrame:
    rank = {system: number for number, system in enumerate(systems)}
    return table.sort_values("system", key=lambda names: names.map(rank), kind="stable", ignore_index=True)
