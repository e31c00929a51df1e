"""What the verdict of a difference has to be, from its 95 % interval and the quantiles of scipy."""

import math
from typing import Any

import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from workbench.papers import claims


def bound(center: float, side: float, count: int, seed_error: float, level: float) -> float:
    """A bound at another level: what of its distance is the seeds' grows by Student's t, the rest by the normal."""
    distance, quantile = abs(side - center), (1 + level) / 2
    of_seeds = distance if math.isnan(seed_error) else min(distance, student.ppf(0.975, count - 1) * seed_error)
    if count == 1:
        of_seeds, by_t = 0.0, 1.0
    else:
        by_t = student.ppf(quantile, count - 1) / student.ppf(0.975, count - 1)
    rest = math.sqrt(distance**2 - of_seeds**2) * norm.ppf(quantile) / norm.ppf(0.975)
    return center + math.copysign(math.hypot(of_seeds * by_t, rest), side - center)


def decided(row: Any, measured: pd.DataFrame, reported: float, share: float) -> str:
    """The verdict of a row of `measured_claims` at the level of Bonferroni's correction over those that count."""
    rows = measured[measured["claim"] == row.claim]
    rows = rows[rows["tuned"]] if rows["tuned"].any() else rows
    count = (rows["seeds"] > 1).sum() or len(rows)
    if row.repeat == "measurement":
        tenth = 0.1 if row.seeds == 1 else 0
        return claims.verdict_of_speeds(row.low * (1 - tenth), row.high * (1 + tenth), reported, share)
    error = 0.05 / count
    if row.groups:
        # The least of n groups but k is below x if k + 1 groups are, and above x if all but k are.
        lows, highs = (
            sorted(bound(group[0], group[side], row.seeds, group[3], 1 - error / parts) for group in row.groups)
            for side, parts in ((1, row.left_out + 1), (2, len(row.groups)))
        )
        low, high = lows[row.left_out], highs[row.left_out]
    else:
        low, high = (bound(row.gain, side, row.seeds, row.seed_error, 1 - error) for side in (row.low, row.high))
    if row.measure == "bleu" and -0.05 < reported <= 0:
        return claims.verdict_of_no_gain(low, high)
    return claims.verdict(low, high, reported, share)
