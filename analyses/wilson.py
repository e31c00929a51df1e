"""Shares of successes with their Wilson intervals (Wilson 1927)."""

from __future__ import annotations

import math

from scipy.stats import norm


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share, both ends in 0..1; NaN for n = 0."""
    if not n:
        return math.nan, math.nan
    z = float(norm.ppf(0.5 + level / 2))
    share, spread = successes / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)
