"""Time and memory for a test set of many segments and systems: statistics, intervals, length buckets, differences.

The text is made up: words drawn by Zipf's law, references of 25 words on average, and systems that miss some of them.
Knows nothing of runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analyses import buckets, significance, statistics_cache
from workbench.benchmark.scale.stages import Stages, measure_apart

_WORDS = 20_000
_PRESET = "tens"


def made_up_texts(segments: int, systems: int, seed: int = 1) -> tuple[list[str], dict[str, list[str]]]:
    """References and systems' outputs; each system replaces a share of the words, the first one most."""
    draw = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    words = np.array(["".join(draw.choice(letters, size)) for size in draw.integers(2, 10, _WORDS)], dtype=object)
    frequency = 1 / np.arange(1, _WORDS + 1)
    lengths = np.clip(6 * draw.standard_gamma(4.0, segments) + 1, 1, 100).astype(np.int64)
    numbers = draw.choice(_WORDS, size=lengths.sum(), p=frequency / frequency.sum())
    ends = np.cumsum(lengths)

    def lines(word_ids: np.ndarray) -> list[str]:
        return [" ".join(segment) + "." for segment in np.split(words[word_ids], ends[:-1])]

    written = {}
    for system in range(systems):
        missed = draw.random(len(numbers)) < 0.5 - 0.2 * system / max(systems - 1, 1)
        written[f"system-{system}"] = lines(np.where(missed, draw.integers(_WORDS, size=len(numbers)), numbers))
    return lines(numbers), written


def measure(
    segments: int, systems: int, metrics: Sequence[str], samples: int, processes: int, seed: int = 1
) -> list[dict[str, Any]]:
    """Measure all stages of scoring in this process, one row each."""
    stages = Stages()
    with stages.stage(f"make {segments:,} segments x {systems} systems"):
        references, written = made_up_texts(segments, systems, seed)
    groups = buckets.preset([len(line.split()) for line in references], _PRESET)
    baseline = next(iter(written))
    with tempfile.TemporaryDirectory() as folder:
        folders = {name: Path(folder) / name for name in written}
        for metric in metrics:
            with stages.stage(f"{metric}: extract statistics"):
                statistics_cache.cached_extract_all(folders, written, references, metric, processes)
            with stages.stage(f"{metric}: read them back"):
                statistics = statistics_cache.cached_extract_all(folders, written, references, metric)
            with stages.stage(f"{metric}: intervals, {samples} resamples"):
                significance.bootstrap_intervals(statistics, samples)
            with stages.stage(f"{metric}: bands in {len(groups)} buckets"):
                buckets.scores(statistics, groups, samples)
            with stages.stage(f"{metric}: differences in {len(groups)} buckets"):
                buckets.paired_differences(statistics, groups, baseline, samples)
    return stages.rows


def measure_testset(
    segments: int, systems: int, metrics: Sequence[str], samples: int = 1000, processes: int = 1, threads: int = 1
) -> list[dict[str, Any]]:
    """Run `measure` in a process of its own."""
    arguments = {"segments": segments, "systems": systems, "metrics": list(metrics), "samples": samples}
    return measure_apart(__name__, {}, threads, **arguments, processes=processes)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
