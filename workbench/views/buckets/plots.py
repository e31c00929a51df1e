"""Translation by sentence length: scores, paired differences, output lengths of each bucket, and how many it holds."""

from __future__ import annotations

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Mark, SeriesStyle, rule
from workbench.views.buckets.panels import MINIMUM_N, by_system, extremes, framed, lines, placed, styles_of

_SCORES = ("system", "bucket", "n", "score", "low", "high")
_DIFFERENCES = ("system", "bucket", "n", "delta", "low", "high", "p_holm")
_LENGTHS = ("system", "bucket", "n", "mean_output_length", "mean_reference_length", "length_ratio")


def length_scores(
    table: pd.DataFrame,
    metric: str = "score",
    length: str = "source length (words)",
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """A line with its band for each system over the buckets; below, n per bucket; grey where n < `minimum_n`."""
    require_columns(table, _SCORES, "table")
    ordered, buckets = placed(table)
    chosen = styles_of(ordered, styles)
    marks: list[Mark] = []
    for system, rows in by_system(ordered):
        marks += lines(rows, "score", system, chosen[system], ("bucket", "n"), "low", "high", minimum_n)
    caption, summary = f"{metric} by {length} with 95% intervals.", extremes(ordered, "score", metric)
    return framed("length-scores", f"{metric} by {length}", marks, Axis(metric), ordered, buckets, length, caption,
                  summary, minimum_n)  # fmt: skip


def length_differences(
    table: pd.DataFrame,
    metric: str = "score",
    baseline: str = "the baseline",
    length: str = "source length (words)",
    alpha: float = 0.05,
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Score minus the baseline's in each bucket with its band; ∗ stands where p after Holm is below `alpha`."""
    require_columns(table, _DIFFERENCES, "table")
    ordered, buckets = placed(table)
    chosen = styles_of(ordered, styles)
    marks: list[Mark] = [rule(0.0)]
    for system, rows in by_system(ordered):
        style = chosen[system]
        marks += lines(rows, "delta", system, style, ("bucket", "n", "p_holm"), "low", "high", minimum_n)
        found = rows[(rows["p_holm"] < alpha) & (rows["n"] >= minimum_n)].assign(text="∗")
        if len(found):
            marks.append(Labels(found, "place", "delta", system, style, align="above", bold=True, font_points=9))
    caption = f"{metric} minus that of {baseline} by {length}, paired, 95% intervals; ∗: p < {alpha:g} after Holm."
    return framed("length-differences", f"Difference in {metric} by {length}", marks, Axis(f"Δ {metric}"), ordered,
                  buckets, length, caption, extremes(ordered, "delta", f"Δ {metric}"), minimum_n)  # fmt: skip


def output_lengths(
    table: pd.DataFrame,
    length: str = "source length (words)",
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Mean output length of each system in each bucket beside the mean reference length (grey)."""
    require_columns(table, _LENGTHS, "table")
    ordered, buckets = placed(table)
    chosen = styles_of(ordered, styles)
    reference = ordered.drop_duplicates("bucket").sort_values("place")
    grey = SeriesStyle(theme.NEUTRAL, "solid", "none", width=1.5)
    marks: list[Mark] = [Line(reference, "place", "mean_reference_length", "reference", grey, ("bucket",))]
    for system, rows in by_system(ordered):
        hover = ("bucket", "n", "length_ratio")
        marks += lines(rows, "mean_output_length", system, chosen[system], hover, minimum_n=minimum_n)
    return framed("output-lengths", f"Output length by {length}", marks, Axis("mean length"), ordered, buckets, length,
                  f"Mean length of output and reference by {length}.",
                  extremes(ordered, "length_ratio", "output/reference length"), minimum_n)  # fmt: skip
