"""What figures over buckets share: systems as lines with bands, n below, and too small buckets in grey.

A bucket with fewer than `minimum_n` members is grey as a bar, and so are the line and its band on both sides of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.grammar import Axis, Bars, Figure, Line, Mark, Panel, SeriesStyle

MINIMUM_N = 100
_FEW = "#C4C4C4"
_MOST_LEVEL = 48  # characters of all labels of an axis that a column of a paper holds side by side


def placed(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table with the place of each bucket on the axis; buckets keep the order in which they come."""
    buckets = [str(bucket) for bucket in dict.fromkeys(table["bucket"])]
    place = {bucket: index for index, bucket in enumerate(buckets)}
    named = table.assign(bucket=table["bucket"].astype(str))
    return named.assign(place=named["bucket"].map(place)).sort_values("place", kind="stable"), buckets


def by_system(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Each system with its rows, in the order in which they come."""
    return [(name, table[table["system"] == name]) for name in dict.fromkeys(table["system"])]


def styles_of(table: pd.DataFrame, given: dict[str, SeriesStyle] | None) -> dict[str, SeriesStyle]:
    """A style for each system of a table."""
    return theme.styles(list(dict.fromkeys(table["system"])), given)


def lines(
    rows: pd.DataFrame,
    y: str,
    series: str,
    style: SeriesStyle,
    hover: tuple[str, ...],
    low: str | None = None,
    high: str | None = None,
    minimum_n: int = MINIMUM_N,
) -> list[Mark]:
    """A system's line: in its own colour where buckets are large enough, and a grey one, dash and marker kept, through
    those that are not and to their neighbours. `y` and the ends of the band are missing where the other is drawn."""
    few = (rows["n"] < minimum_n).to_numpy()
    grey = replace(style, colour=_FEW)
    if few.all():
        return [Line(rows, "place", y, series, grey, hover, True, low, high)]
    drawn = [column for column in (y, low, high) if column]
    enough = rows.assign(**{column: rows[column].where(~few) for column in drawn})
    around = [rows.iloc[max(first - 1, 0) : last + 2] for first, last in _stretches(few)]
    return [
        *(Line(some, "place", y, series, grey, hover, False, low, high) for some in around),
        Line(enough, "place", y, series, style, hover, True, low, high),
    ]


def framed(
    name: str,
    title: str,
    marks: Sequence[Mark],
    y: Axis,
    table: pd.DataFrame,
    buckets: list[str],
    label: str,
    caption: str,
    summary: str,
    minimum_n: int = MINIMUM_N,
    members: str = "sentences",
) -> Figure:
    """The marks above the strip of n per bucket."""
    counts = table.drop_duplicates("bucket")
    enough = SeriesStyle("#555555", "none", "none")
    strip: list[Mark] = []
    for rows, style, series in (
        (counts[counts["n"] >= minimum_n], enough, f"n ≥ {minimum_n}"),
        (counts[counts["n"] < minimum_n], replace(enough, colour=_FEW), f"n < {minimum_n}"),
    ):
        if len(rows):
            strip.append(Bars(rows, "place", "n", series, style, ("bucket",), legend=False))
    if (counts["n"] < minimum_n).any():
        caption += f" Buckets of fewer than {minimum_n} {members} are grey: do not read them."
    x = category_axis(buckets, label)
    panels = (Panel(tuple(marks), x, y, height=1.35), Panel(tuple(strip), x, Axis("n"), height=0.32))
    width = "page" if sum(map(len, buckets)) > _MOST_LEVEL else "column"
    return Figure(name, title, panels, caption, summary, width=width, shared_x=True)  # type: ignore[arg-type]


def extremes(table: pd.DataFrame, column: str, what: str) -> str:
    """From where to where each system goes, in words; buckets that are too small count as others do."""
    said = []
    for system, rows in by_system(table.dropna(subset=[column])):
        ordered = rows.sort_values(column)
        low, high = ordered.iloc[0], ordered.iloc[-1]
        said.append(
            f"{system}: from {low[column]:.2f} (at {low['bucket']}) to {high[column]:.2f} (at {high['bucket']})"
        )
    return f"{what}. {'; '.join(said)}."


def _stretches(flags: np.ndarray) -> list[tuple[int, int]]:
    """The first and last place of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]
