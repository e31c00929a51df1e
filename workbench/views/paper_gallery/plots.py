"""A table of a paper as dots: printed numbers hollow, ours filled with their intervals, a panel for each unit.

It knows places, units and numbers; which of ours stands in which row was decided before (`workbench.papers.presets`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Marker, Panel, Points, SeriesStyle

_PRINTED = ("row", "label", "column", "unit", "value")
_OURS = ("row", "series", "unit", "score", "low", "high")
_HOLLOW = tuple(marker for marker in get_args(Marker) if marker not in ("cross", "x", "none"))  # these have an inside
_MOST_BESIDE = 3  # panels


def paper_table(
    printed: pd.DataFrame,
    ours: pd.DataFrame | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """A panel for each unit of `printed`, then for each that only `ours` has; rows in the order in which they come, and
    `label` names a `row` on the axis.

    Columns that share a unit share its panel, each with a marker of its own. `low` and `high` are the ends of an
    interval (NaN where there is none). Raises ValueError where a row of `ours` is none of the printed ones.
    """
    require_columns(printed, _PRINTED, "printed")
    ours = pd.DataFrame(columns=_OURS) if ours is None else ours
    require_columns(ours, _OURS, "ours")
    labels = dict(zip(printed["row"], printed["label"], strict=True))
    unknown = sorted(set(ours["row"]) - set(labels))
    if unknown:
        raise ValueError(f"there is a score of ours for {unknown[0]!r}, which is no row of the printed table")
    place = {row: index for index, row in enumerate(labels)}
    theirs = printed.assign(place=printed["row"].map(place)).dropna(subset=["value"])
    mine = ours.assign(place=ours["row"].map(place))
    chosen = theme.styles(list(dict.fromkeys(mine["series"])), styles)
    y = category_axis(list(labels.values()), reversed=True)
    panels = [
        Panel(
            (*_hollow(theirs[theirs["unit"] == unit]), *_filled(mine[mine["unit"] == unit], chosen)),
            Axis(unit),
            y,
            max(0.6, 0.16 * len(labels)),
        )
        for unit in dict.fromkeys([*theirs["unit"], *mine["unit"]])
    ]
    return Figure(
        "paper-table",
        "Reported vs. ours",
        tuple(panels),
        caption,
        _summary(theirs, mine),
        width="page",
        shared_y=True,
        columns=min(len(panels), _MOST_BESIDE) or 1,
    )


def _hollow(printed: pd.DataFrame) -> list[Mark]:
    columns = list(dict.fromkeys(printed["column"]))
    return [
        Points(
            printed[printed["column"] == column], "value", "place",
            f"printed {column}" if len(columns) > 1 else "printed",
            replace(theme.PRINTED, marker=_HOLLOW[number % len(_HOLLOW)]), ("label", "column"),
        )
        for number, column in enumerate(columns)
    ]  # fmt: skip


def _filled(ours: pd.DataFrame, styles: dict[str, SeriesStyle]) -> list[Mark]:
    said = tuple(name for name in ("where", "data", "test", "signature") if name in ours)
    return [
        Points(
            ours[ours["series"] == series], "score", "place", series, styles[series], said,
            low="low", high="high", error_axis="x",
        )
        for series in dict.fromkeys(ours["series"])
    ]  # fmt: skip


def _summary(printed: pd.DataFrame, ours: pd.DataFrame) -> str:
    said = []
    for unit in dict.fromkeys(printed["unit"]):
        rows = printed[printed["unit"] == unit].sort_values("value", kind="stable")
        low, high = rows.iloc[0], rows.iloc[-1]
        text = (
            f"{unit}: reported are {low['value']:.10g} ({low['label']}, {low['column']}) to "
            f"{high['value']:.10g} ({high['label']}, {high['column']})"
        )
        mine = _range(ours, unit)
        said.append(f"{text}, {mine}" if mine else text)
    alone = dict.fromkeys(unit for unit in ours["unit"] if unit not in set(printed["unit"]))
    said += [f"{unit}: {_range(ours, unit)}" for unit in alone]
    return f"{'; '.join(said)}."


def _range(ours: pd.DataFrame, unit: str) -> str:
    """From where to where ours are in a unit; "" where there is none."""
    mine = ours.loc[ours["unit"] == unit, "score"]
    return f"ours on other data {mine.min():.2f} to {mine.max():.2f}" if len(mine) else ""
