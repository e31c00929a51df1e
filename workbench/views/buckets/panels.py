"""Shared parts of figures over buckets: lines with intervals for systems, n below, and small buckets in gray.

The bar of a bucket with fewer than `minimum_n` members is gray, and so are its interval and the lines next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.grammar import Axis, Bars, Figure, Line, Mark, Panel, Points, SeriesStyle
from workbench.plotting.texts import enumeration

MINIMUM_N = 100
MOST_BANDS = 2  # systems
_FEW = "#C4C4C4"
_MOST_LEVEL = 48  # most characters of all labels of an axis at the width of a paper's column


def placed(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Add the axis position of each bucket (column `place`); returns the table and the buckets in their order."""
    buckets = [str(bucket) for bucket in dict.fromkeys(table["bucket"])]
    positions = {bucket: index for index, bucket in enumerate(buckets)}
    labeled = table.assign(bucket=table["bucket"].astype(str))
    return labeled.assign(place=labeled["bucket"].map(positions)).sort_values("place", kind="stable"), buckets


def by_system(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Systems with their rows, in order of appearance."""
    return [(name, table[table["system"] == name]) for name in dict.fromkeys(table["system"])]


def styles_of(table: pd.DataFrame, requested: dict[str, SeriesStyle] | None) -> dict[str, SeriesStyle]:
    """Style for each system of a table."""
    return theme.styles(list(dict.fromkeys(table["system"])), requested)


def spread(table: pd.DataFrame, minimum_n: int = MINIMUM_N) -> pd.DataFrame:
    """Move the systems of each bucket apart where they have error bars."""
    systems = list(dict.fromkeys(table["system"]))
    if _have_bands(table, minimum_n):
        return table
    return table.assign(place=table["place"] + table["system"].map(side_by_side(systems)))


def _have_bands(table: pd.DataFrame, minimum_n: int) -> bool:
    """Whether intervals are bands: of few systems, none of which would end at a small bucket."""
    small = table["n"] < minimum_n
    return table["system"].nunique() <= MOST_BANDS and bool(small.all() or not small.any())


def curves(
    table: pd.DataFrame,
    y: str,
    styles: dict[str, SeriesStyle],
    hover: tuple[str, ...],
    low: str | None = None,
    high: str | None = None,
    minimum_n: int = MINIMUM_N,
) -> list[Mark]:
    """Lines of all systems of a `spread` table, with intervals between `low` and `high`: bands, else error bars."""
    marks: list[Mark] = []
    bands = low is None or _have_bands(table, minimum_n)
    ends = (low, high) if bands else (None, None)
    for system, rows in by_system(table):
        marks += _line(rows, y, system, styles[system], hover, *ends, minimum_n)
        if bands:
            continue
        small = rows["n"] < minimum_n
        for part, style in ((rows[~small], styles[system]), (rows[small], replace(styles[system], colour=_FEW))):
            if len(part):
                marks.append(Points(part, "place", y, system, style, hover, legend=False, low=low, high=high))
    return marks


def _line(
    rows: pd.DataFrame,
    y: str,
    series: str,
    style: SeriesStyle,
    hover: tuple[str, ...],
    low: str | None,
    high: str | None,
    minimum_n: int,
) -> list[Mark]:
    """Lines of a system: in its color through large buckets, in gray through small buckets and to their neighbors.

    Gray lines keep dash and marker. Each line has NaN for `y` in the buckets of the other.
    """
    is_small = (rows["n"] < minimum_n).to_numpy()
    gray = replace(style, colour=_FEW)
    if is_small.all():
        return [Line(rows, "place", y, series, gray, hover, True, low, high)]
    large = rows.assign(**{y: rows[y].where(~is_small)})
    small_stretches = [rows.iloc[max(first - 1, 0) : last + 2] for first, last in _stretches(is_small)]
    return [
        *(Line(stretch, "place", y, series, gray, hover, False) for stretch in small_stretches),
        Line(large, "place", y, series, style, hover, True, low, high),
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
    """Figure with the marks above a strip of n per bucket."""
    counts = table.drop_duplicates("bucket")
    large = SeriesStyle("#555555", "none", "none")
    strip: list[Mark] = []
    for rows, style, series in (
        (counts[counts["n"] >= minimum_n], large, f"n ≥ {minimum_n}"),
        (counts[counts["n"] < minimum_n], replace(large, colour=_FEW), f"n < {minimum_n}"),
    ):
        if len(rows):
            strip.append(Bars(rows, "place", "n", series, style, ("bucket",), legend=False))
    if (counts["n"] < minimum_n).any():
        caption += f" Buckets of fewer than {minimum_n} {members} are grey: do not read them."
    x = category_axis(buckets, label)
    panels = (Panel(tuple(marks), x, y, height=1.35), Panel(tuple(strip), x, Axis("n"), height=0.32))
    width = "page" if sum(map(len, buckets)) > _MOST_LEVEL else "column"
    return Figure(name, title, panels, caption, summary, width=width, shared_x=True)  # type: ignore[arg-type]


def extremes(table: pd.DataFrame, column: str, what: str, minimum_n: int = MINIMUM_N) -> str:
    """Summary: which system is highest and which lowest in each bucket, or of one system in which bucket it is.

    Small buckets, which are not to be read, do not count, nor do those where all systems are alike.
    """
    large = table[table["n"] >= minimum_n].dropna(subset=[column])
    if large.empty:
        return f"Every bucket is too small to read {what} from it."
    if large["system"].nunique() == 1:
        ordered = large.sort_values(column)
        low, high = ordered.iloc[0], ordered.iloc[-1]
        if f"{low[column]:.2f}" == f"{high[column]:.2f}":
            return f"{what} of {low['system']} is {low[column]:.2f} in {enumeration(large['bucket'].tolist())}."
        return (
            f"{what} of {low['system']} is lowest in {low['bucket']} ({low[column]:.2f}) and highest in "
            f"{high['bucket']} ({high[column]:.2f})."
        )
    in_buckets = [rows.sort_values(column, kind="stable") for _, rows in large.groupby("place", sort=True)]
    told_apart = [rows for rows in in_buckets if f"{rows[column].iloc[0]:.2f}" != f"{rows[column].iloc[-1]:.2f}"]
    if not told_apart:
        return f"{what} is the same for all systems."
    ends = [
        f"{name} {_in_which([rows.iloc[end] for rows in told_apart], column)}"
        for name, end in (("highest", -1), ("lowest", 0))
    ]
    return f"{what} is {'; it is '.join(ends)}."


def _in_which(found: Sequence[pd.Series], column: str) -> str:
    """ "for a in (0,10] (83.47) and (10,20] (88.21), for b in …" for one row a bucket."""
    buckets_of: dict[str, list[str]] = {}
    for row in found:
        buckets_of.setdefault(row["system"], []).append(f"{row['bucket']} ({row[column]:.2f})")
    return ", ".join(f"for {system} in {' and '.join(buckets)}" for system, buckets in buckets_of.items())


def _stretches(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]
