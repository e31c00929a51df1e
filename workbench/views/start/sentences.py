"""Sentences worth looking at: where the outputs of runs differ most in quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from analyses.sentences import segment_scores
from workbench.evaluation import scoring
from workbench.store.runs import Run, RunError


def spread(runs: Sequence[Run], test: str) -> np.ndarray:
    """Difference of the best and the worst run in segment chrF, [sentences]. Raises RunError without references."""
    opened = {run.name: run.translations(test) for run in runs}
    statistics = scoring.statistics_of_all(runs, opened, "chrf")
    return np.ptp(np.stack([segment_scores(statistics[run.name]) for run in runs]), axis=0)


def most_different(runs: Sequence[Run], test: str, allowed: Callable[[int, int], bool] = lambda *_: True) -> int:
    """The sentence with the largest `spread` among those whose (number, source words) are allowed; else sentence 0."""
    sources = runs[0].translations(test).test_set.sources
    rows = [row for row, source in enumerate(sources) if allowed(row, len(source.split()))]
    try:
        differences = spread(runs, test)
    except RunError:  # without references
        return rows[0] if rows else 0
    return max(rows, key=lambda row: differences[row], default=0)
