"""What the verdict of a difference has to be."""

from typing import Any

import pandas as pd

from analyses.power import at_level, least_at_level
from workbench.papers import claims


def decided(row: Any, measured: pd.DataFrame, reported: float, share: float) -> str:
    """The verdict of a row of `measured_claims` at the level of Bonferroni's correction over those that count."""
    rows = measured[measured["claim"] == row.claim]
    rows = rows[rows["tuned"]] if rows["tuned"].any() else rows
    count = (rows["seeds"] > 1).sum() or len(rows)
    if row.repeat == "measurement":
        return claims.verdict_of_speeds(row.low, row.high, reported, share)
    level = 1 - 0.05 / count
    if row.groups:
        interval = least_at_level(row.groups, row.left_out, row.seeds, level)
    else:
        interval = at_level(row.gain, row.low, row.high, row.seeds, row.seed_error, level)
    return claims.verdict(*interval, reported, share)
