"""Dot plot of a paper's table: reported numbers hollow, ours filled with intervals, one panel for each unit.

The rows of our numbers are assigned in `workbench.papers.presets`.
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
_HOLLOW = tuple(
    marker for marker in get_args(Marker) if marker not in ("cross", "x", "none")
)  # markers with an interior
_MOST_BESIDE = 3  # most panels in a row


def paper_table(
    printed: pd.DataFrame,
    ours: pd.DataFrame | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Reported and our numbers, one panel for each unit of `printed`, then for each unit that only `ours` has.

    `label` names a `row` on the axis. Columns with the same unit share its panel, each with its own marker. `low` and
    `high` bound an interval (NaN: none). Raises ValueError if a row of `ours` is not in `printed`.
    """
    require_columns(printed, _PRINTED, "reported")
    ours = pd.DataFrame(columns=_OURS) if ours is None else ours
    require_columns(ours, _OURS, "ours")
    labels = dict(zip(printed["row"], printed["label"], strict=True))
    unknown = sorted(set(ours["row"]) - set(labels))
    if unknown:
        raise ValueError(f"there is a score of ours for {unknown[0]!r}, which is no row of the reported table")
    row_places = {row: index for index, row in enumerate(labels)}
    reported = printed.assign(place=printed["row"].map(row_places)).dropna(subset=["value"])
    own_results = ours.assign(place=ours["row"].map(row_places))
    series_styles = theme.styles(list(dict.fromkeys(own_results["series"])), styles)
    y = category_axis(list(labels.values()), reversed=True)
    panels = [
        Panel(
            (
                *_reported_marks(reported[reported["unit"] == unit]),
                *_own_marks(own_results[own_results["unit"] == unit], series_styles),
            ),
            Axis(unit),
            y,
            max(0.6, 0.16 * len(labels)),
        )
        for unit in dict.fromkeys([*reported["unit"], *own_results["unit"]])
    ]
    return Figure(
        "paper-table",
        "Reported vs. ours",
        tuple(panels),
        caption,
        _summary(reported, own_results),
        width="page",
        shared_y=True,
        columns=min(len(panels), _MOST_BESIDE) or 1,
    )


def _reported_marks(printed: pd.DataFrame) -> list[Mark]:
    columns = list(dict.fromkeys(printed["column"]))
    return [
        Points(
            printed[printed["column"] == column], "value", "place",
            f"reported {column}" if len(columns) > 1 else "reported",
            replace(theme.REPORTED, marker=_HOLLOW[number % len(_HOLLOW)]), ("label", "column"),
        )
        for number, column in enumerate(columns)
    ]  # fmt: skip


def _own_marks(ours: pd.DataFrame, styles: dict[str, SeriesStyle]) -> list[Mark]:
    hover = tuple(name for name in ("where", "data", "test", "signature") if name in ours)
    return [
        Points(
            ours[ours["series"] == series], "score", "place", series, styles[series], hover,
            low="low", high="high", error_axis="x",
        )
        for series in dict.fromkeys(ours["series"])
    ]  # fmt: skip


def _summary(printed: pd.DataFrame, ours: pd.DataFrame) -> str:
    descriptions = []
    for unit in dict.fromkeys(printed["unit"]):
        rows = printed[printed["unit"] == unit].sort_values("value", kind="stable")
        low, high = rows.iloc[0], rows.iloc[-1]
        text = (
            f"{unit}: reported are {low['value']:.10g} ({low['label']}, {low['column']}) to "
            f"{high['value']:.10g} ({high['label']}, {high['column']})"
        )
        own_range = _range(ours, unit)
        descriptions.append(f"{text}, {own_range}" if own_range else text)
    own_units = dict.fromkeys(unit for unit in ours["unit"] if unit not in set(printed["unit"]))
    descriptions += [f"{unit}: {_range(ours, unit)}" for unit in own_units]
    return f"{'; '.join(descriptions)}."


def _range(ours: pd.DataFrame, unit: str) -> str:
    """Text with the range of our numbers in a unit; "" without any."""
    scores = ours.loc[ours["unit"] == unit, "score"]
    return f"ours on other data {scores.min():.2f} to {scores.max():.2f}" if len(scores) else ""
