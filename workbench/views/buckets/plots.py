"""Plots by bucket (of sentence length and others): scores, paired differences, output lengths, and bucket sizes."""

from __future__ import annotations

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Mark, SeriesStyle, rule
from workbench.views.buckets.panels import MINIMUM_N, by_system, curves, extremes, framed, placed, spread, styles_of

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
    """Line with intervals for each system over the buckets; below, n per bucket; gray where n < `minimum_n`."""
    require_columns(table, _SCORES, "table")
    ordered, buckets = placed(table)
    series_styles = styles_of(ordered, styles)
    marks = curves(spread(ordered, minimum_n), "score", series_styles, ("bucket", "n"), "low", "high", minimum_n)
    caption, summary = f"{metric} by {length} with 95% intervals.", extremes(ordered, "score", metric, minimum_n)
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
    """Difference to the baseline's score by bucket, with intervals; ∗ marks p after Holm below `alpha`."""
    require_columns(table, _DIFFERENCES, "table")
    ordered, buckets = placed(table)
    series_styles = styles_of(ordered, styles)
    drawn, hover = spread(ordered, minimum_n), ("bucket", "n", "p_holm")
    marks: list[Mark] = [rule(0.0), *curves(drawn, "delta", series_styles, hover, "low", "high", minimum_n)]
    for system, rows in by_system(drawn):
        style = series_styles[system]
        significant = rows[(rows["p_holm"] < alpha) & (rows["n"] >= minimum_n)].assign(text="∗")
        if len(significant):
            marks.append(Labels(significant, "place", "delta", system, style, align="above", bold=True, font_points=9))
    caption = f"{metric} minus that of {baseline} by {length}, paired, 95% intervals; ∗: p < {alpha:g} after Holm."
    return framed("length-differences", f"Difference in {metric} by {length}", marks, Axis(f"Δ {metric}"), ordered,
                  buckets, length, caption, extremes(ordered, "delta", f"Δ {metric}", minimum_n),
                  minimum_n)  # fmt: skip


def output_lengths(
    table: pd.DataFrame,
    length: str = "source length (words)",
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Mean output length of each system by bucket, with the mean reference length in gray."""
    require_columns(table, _LENGTHS, "table")
    ordered, buckets = placed(table)
    series_styles = styles_of(ordered, styles)
    reference = ordered.drop_duplicates("bucket").sort_values("place")
    gray = SeriesStyle(theme.NEUTRAL, "solid", "none", width=1.5)
    marks: list[Mark] = [Line(reference, "place", "mean_reference_length", "reference", gray, ("bucket",))]
    marks += curves(ordered, "mean_output_length", series_styles, ("bucket", "n", "length_ratio"), minimum_n=minimum_n)
    return framed("output-lengths", f"Output length by {length}", marks, Axis("mean length (words)"), ordered, buckets,
                  length, f"Mean length of output and reference in words, by {length}.",
                  extremes(ordered, "length_ratio", "Output length per reference length", minimum_n),
                  minimum_n)  # fmt: skip
