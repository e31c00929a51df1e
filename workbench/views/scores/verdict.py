"""What differences to a baseline say, in words, and by which test."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from analyses.scores import LOWER_IS_BETTER

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
METHOD_TEXTS = {
    "bootstrap": "Paired bootstrap over the same sentences, p two-sided, by inverting the interval",
    "randomization": "Approximate randomization over the same sentences, two-sided",
    "sign": "Sign test over the same sentences, two-sided",
    "bootstrap-sacrebleu": "Paired bootstrap over the same sentences, p by sacreBLEU's rule (below 0.05 in about "
    "12 % of the cases where systems are equally good)",
}


def verdict(comparisons: pd.DataFrame, baseline: str) -> str:
    """Which systems are better or worse than the baseline, and which differ by no more than chance explains.

    comparisons: columns system, metric (one only, by its display name), delta, low, high, p_holm, as of
    `scoring.comparison_table`; low and high are NaN where the test gives no interval. A difference counts with p < 0.05
    after Holm's correction.
    """
    metric = comparisons["metric"].iloc[0]
    sign = -1 if metric in LOWER_IS_BETTER else 1
    rows = comparisons.sort_values("delta", key=lambda delta: -sign * delta, kind="stable").to_dict("records")
    found = [row for row in rows if row["p_holm"] < LEVEL]
    sentences = [
        f"{relation} than {baseline} in {metric}: {', '.join(map(_difference, chosen))}."
        for relation, chosen in (
            ("Better", [row for row in found if sign * row["delta"] > 0]),
            ("Worse", [row for row in found if sign * row["delta"] < 0]),
        )
        if chosen
    ]
    others = [row["system"] for row in rows if row not in found]
    if others:
        sentences.append(f"No significant difference in {metric} (p < {LEVEL} after Holm): {', '.join(others)}.")
    return " ".join(sentences)


def _difference(row: Mapping[Hashable, Any]) -> str:
    interval = "" if row["low"] != row["low"] else f", 95% CI {row['low']:+.1f} to {row['high']:+.1f}"
    numbers = f"{row['delta']:+.1f}{interval}, p = {row['p_holm']:.3f}".replace("-", "−")
    return f"{row['system']} ({numbers})"
