"""Shares of successes with their Wilson intervals (Wilson 1927)."""

from __future__ import annotations

import math

from scipy.stats import binomtest


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share, both ends in 0..1; NaN for n = 0."""
    if not n:
        return math.nan, math.nan
    interval = binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)
