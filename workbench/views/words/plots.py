"""Plots of F-measure by word frequency, and of the n-grams by which two systems differ."""

from __future__ import annotations

import pandas as pd

from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Panel, Points, Segments, SeriesStyle
from workbench.views.buckets import panels

_F_MEASURES = ("system", "bucket", "n", "score", "low", "high", "precision", "recall")
_NGRAMS = ("ngram", "reference", "first", "second", "difference")


def word_f_measure(
    table: pd.DataFrame,
    counted: str = "the test set",
    minimum_n: int = panels.MINIMUM_N,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Line with intervals for each system over frequency buckets; below, the reference words of each bucket."""
    require_columns(table, _F_MEASURES, "table")
    placed, names = panels.placed(table)
    series_styles = panels.styles_of(placed, styles)
    hover = ("bucket", "n", "precision", "recall")
    marks = panels.curves(panels.spread(placed, minimum_n), "score", series_styles, hover, "low", "high", minimum_n)
    return panels.framed(
        "word-f-measure", "F-measure of words by frequency", marks, Axis("F-measure"), placed, names,
        "frequency of the word",
        f"F-measure of target words by how often they stand in {counted}, with 95% intervals; n: reference words.",
        panels.extremes(placed, "score", "F-measure", minimum_n), minimum_n, "words",
    )  # fmt: skip


def ngram_differences(
    table: pd.DataFrame,
    systems: tuple[str, str] = ("first", "second"),
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Matches of each n-gram with the reference by both systems, joined by a line; rows as in the table."""
    require_columns(table, _NGRAMS, "table")
    rows = table.assign(place=range(len(table)), end=range(len(table)))
    series_styles = panels.theme.styles(list(systems), styles)
    line_style = SeriesStyle("#BBBBBB", "solid", "none", width=0.75)
    marks: list[Mark] = [Segments(rows, "first", "place", "", line_style, legend=False, x_end="second", y_end="end")]
    for column, system in zip(("first", "second"), systems, strict=True):
        marks.append(Points(rows, column, "place", system, series_styles[system], ("ngram", "reference")))
    ahead = [int((table["difference"] * sign > 0).sum()) for sign in (1, -1)]
    return Figure(
        "ngram-differences",
        "N-grams that one system has and another lacks",
        (
            Panel(
                tuple(marks),
                Axis("matched with the reference"),
                category_axis(table["ngram"].tolist(), reversed=True),
                max(0.8, 0.15 * len(table)),
            ),
        ),
        caption=f"N-grams of the references that {systems[0]} and {systems[1]} match unequally often.",
        summary=f"Of the {len(table)} n-grams drawn, {systems[0]} matches {ahead[0]} more often and {systems[1]} "
        f"{ahead[1]}.",
        width="page",
    )
