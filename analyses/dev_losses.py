"""Differences of dev losses to a baseline, by update: what more training does to a system's gain."""

from __future__ import annotations

import pandas as pd

from analyses.power import interval

DIFFERENCES = ["system", "step", "seeds", "delta", "low", "high"]


def last_losses(losses: pd.DataFrame) -> pd.DataFrame:
    """Of dev losses (columns system, seed, step, dev_loss) the row of each training's last validation."""
    known = losses.dropna(subset=["dev_loss"]).sort_values("step", kind="stable")
    return known.drop_duplicates(["system", "seed"], keep="last")


def differences_by_update(losses: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Mean differences over seeds at every step that the baseline and the system share, below 0 where it is better.

    losses: columns system, seed, step, dev_loss (nats a target token). low and high: the 95 % interval, Student's t of
    the seeds; missing with one seed, as it is of the same dev text. Columns: `DIFFERENCES`, delta in nats.
    """
    by_seed = losses.pivot_table(index=["step", "seed"], columns="system", values="dev_loss", sort=False)
    if baseline not in by_seed:
        raise ValueError(f"no dev losses of the baseline {baseline!r}")
    rows = []
    for system in by_seed.columns.drop(baseline):
        paired = (by_seed[system] - by_seed[baseline]).dropna()
        for step, differences in paired.groupby(level="step"):
            values = differences.tolist()
            low, high = interval(values, 0.0) if len(values) > 1 else (float("nan"), float("nan"))
            rows.append((system, step, len(values), sum(values) / len(values), low, high))
    return pd.DataFrame(rows, columns=DIFFERENCES)
