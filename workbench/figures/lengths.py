"""Translation by sentence length: scores, paired differences, output lengths of each bucket, and how many it holds."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from workbench.figures import theme
from workbench.figures.axes import category_axis
from workbench.figures.grammar import Axis, Bars, Figure, Labels, Line, Mark, Panel, SeriesStyle, rule
from workbench.figures.registry import register, require_columns

MINIMUM_N = 100
_SCORES = ("system", "bucket", "n", "score", "low", "high")
_DIFFERENCES = ("system", "bucket", "n", "delta", "low", "high", "p_holm")
_LENGTHS = ("system", "bucket", "n", "mean_output_length", "mean_reference_length", "length_ratio")


@register("length-scores", "Scores by sentence length", {"table": _SCORES})
def length_scores(
    table: pd.DataFrame,
    metric: str = "score",
    length: str = "source length (words)",
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """A line with its band for each system over the buckets; below, n per bucket, grey where n < `minimum_n`."""
    require_columns(table, _SCORES, "table")
    placed, buckets = _placed(table)
    chosen = _styles(placed, styles)
    lines = tuple(
        Line(rows, "place", "score", system, chosen[system], ("bucket", "n"), True, "low", "high")
        for system, rows in _by_system(placed)
    )
    return _framed("length-scores", f"{metric} by length", lines, Axis(metric), placed, buckets, length, minimum_n,
                   f"{metric} by {length} with 95 % intervals.", _extremes(placed, "score", metric))  # fmt: skip


@register("length-differences", "Paired differences by sentence length", {"table": _DIFFERENCES})
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
    placed, buckets = _placed(table)
    chosen = _styles(placed, styles)
    marks: list[Mark] = [rule(0.0)]
    for system, rows in _by_system(placed):
        style = chosen[system]
        marks.append(Line(rows, "place", "delta", system, style, ("bucket", "n", "p_holm"), True, "low", "high"))
        found = rows[rows["p_holm"] < alpha].assign(text="∗")
        if len(found):
            marks.append(Labels(found, "place", "delta", system, style, align="above", bold=True, font_points=9))
    caption = f"{metric} minus that of {baseline} by {length}, paired, 95 % intervals; ∗: p < {alpha:g} after Holm."
    summary = _extremes(placed, "delta", f"Δ {metric}")
    return _framed("length-differences", f"Difference in {metric} by length", tuple(marks), Axis(f"Δ {metric}"),
                   placed, buckets, length, minimum_n, caption, summary)  # fmt: skip


@register("output-lengths", "Output length by sentence length", {"table": _LENGTHS})
def output_lengths(
    table: pd.DataFrame,
    length: str = "source length (words)",
    minimum_n: int = MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Mean output length of each system in each bucket beside the mean reference length (grey)."""
    require_columns(table, _LENGTHS, "table")
    placed, buckets = _placed(table)
    chosen = _styles(placed, styles)
    reference = placed.drop_duplicates("bucket").sort_values("place")
    grey = SeriesStyle(theme.NEUTRAL, "solid", "none", width=1.5)
    marks: list[Mark] = [Line(reference, "place", "mean_reference_length", "reference", grey, ("bucket",))]
    for system, rows in _by_system(placed):
        hover = ("bucket", "n", "length_ratio")
        marks.append(Line(rows, "place", "mean_output_length", system, chosen[system], hover))
    summary = _extremes(placed, "length_ratio", "output/reference length")
    return _framed("output-lengths", "Output length", tuple(marks), Axis("mean length"), placed, buckets, length,
                   minimum_n, f"Mean length of output and reference by {length}.", summary)  # fmt: skip


def _placed(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table with the place of each bucket on the axis; buckets keep the order in which they come."""
    buckets = [str(bucket) for bucket in dict.fromkeys(table["bucket"])]
    place = {bucket: index for index, bucket in enumerate(buckets)}
    named = table.assign(bucket=table["bucket"].astype(str))
    return named.assign(place=named["bucket"].map(place)).sort_values("place", kind="stable"), buckets


def _by_system(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(name, table[table["system"] == name]) for name in dict.fromkeys(table["system"])]


def _styles(table: pd.DataFrame, given: dict[str, SeriesStyle] | None) -> dict[str, SeriesStyle]:
    return theme.styles(list(dict.fromkeys(table["system"])), given)


def _framed(
    name: str, title: str, marks: tuple[Mark, ...], y: Axis, table: pd.DataFrame, buckets: list[str], length: str,
    minimum_n: int, caption: str, summary: str,
) -> Figure:  # fmt: skip
    """The marks above the strip of n per bucket."""
    counts = table.drop_duplicates("bucket")
    enough = SeriesStyle("#555555", "none", "none")
    few = replace(enough, colour="#C4C4C4")
    strip: list[Mark] = []
    for rows, style, series in (
        (counts[counts["n"] >= minimum_n], enough, f"n ≥ {minimum_n}"),
        (counts[counts["n"] < minimum_n], few, f"n < {minimum_n}"),
    ):
        if len(rows):
            strip.append(Bars(rows, "place", "n", series, style, ("bucket",), legend=False))
    if (counts["n"] < minimum_n).any():
        caption += f" Buckets of fewer than {minimum_n} sentences are grey: do not read them."
    x = category_axis(buckets, length)
    panels = (Panel(marks, x, y, height=1.35), Panel(tuple(strip), x, Axis("n"), height=0.32))
    return Figure(name, title, panels, caption, summary, shared_x=True)


def _extremes(table: pd.DataFrame, column: str, what: str) -> str:
    said = []
    for system, rows in _by_system(table.dropna(subset=[column])):
        ordered = rows.sort_values(column)
        low, high = ordered.iloc[0], ordered.iloc[-1]
        said.append(
            f"{system}: from {low[column]:.2f} (length {low['bucket']}) to {high[column]:.2f} (length {high['bucket']})"
        )
    return f"{what}. {'; '.join(said)}."
