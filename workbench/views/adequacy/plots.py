"""Plot of the share of right choices by distance, for choices with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Panel, Points, SeriesStyle
from workbench.plotting.texts import by_system

_COLUMNS = ("choice", "system", "n", "right", "wrong", "undecidable", "share", "low", "high")


def choices(
    table: pd.DataFrame,
    by: str,
    titles: Mapping[str, str],
    bound: str = "",
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Percent of right choices over the values of `by`, one panel for each choice; `share`, `low`, `high`: fractions.

    titles: of the panels, by choice. bound: the system that stands for a simple rule, in gray. Values are labeled with
    the number of choices; undecidable ones are in the table.
    """
    require_columns(table, (*_COLUMNS, by), "table")
    systems = [name for name in dict.fromkeys(table["system"]) if name != bound]
    series_styles = {**theme.styles(systems, styles), bound: theme.BOUND}
    shown = [choice for choice in titles if choice in set(table["choice"])]
    panels = tuple(_panel(table[table["choice"] == choice], by, titles[choice], series_styles) for choice in shown)
    return Figure(
        "true-choices", "Choices", panels, caption, _summary(table, systems), columns=len(panels), width="page"
    )


def _panel(table: pd.DataFrame, by: str, title: str, series_styles: Mapping[str, SeriesStyle]) -> Panel:
    values, systems = (list(dict.fromkeys(table[name])) for name in (by, "system"))
    offsets = side_by_side(systems)
    placed = table.assign(
        place=[values.index(value) + offsets[system] for value, system in zip(table[by], table["system"], strict=True)],
        **{f"{name}_percent": 100 * table[name] for name in ("share", "low", "high")},
    )
    marks: list[Mark] = []
    for system in systems:
        rows = placed[placed["system"] == system].dropna(subset="share")
        style = replace(series_styles[system], dash="none", size=5.0)
        hover = ("n", "right", "wrong", "undecidable")
        marks.append(
            Points(rows, "place", "share_percent", system, style, hover, low="low_percent", high="high_percent")
        )
    counts = table.groupby(by)["n"].first()
    axis = category_axis([f"{value} (n = {counts[value]})" for value in values])
    return Panel(tuple(marks), axis, Axis("right (%)", range=(0.0, 104.0)), 1.4, title)


def _summary(table: pd.DataFrame, systems: list[str]) -> str:
    """Summary: of each choice the systems with the largest and the least share of right ones."""
    descriptions = []
    for choice, rows in table[table["system"].isin(systems)].groupby("choice", sort=False):
        sums = rows.groupby("system", sort=False)[["right", "wrong"]].sum()
        sums = sums.assign(decided=sums["right"] + sums["wrong"])
        sums = sums[sums["decided"] > 0].assign(share=sums["right"] / sums["decided"]).sort_values("share")
        told = {str(name): f"{row['right']:.0f} of {row['decided']:.0f}" for name, row in sums.iterrows()}
        counts = [f"{name} ({count})" for name, count in told.items()]
        if len(counts) > 1 and sums["share"].iloc[0] == sums["share"].iloc[-1]:
            descriptions.append(f"The share of right {choice}s is the same for all systems: {by_system(told)}.")
        elif len(counts) > 1:
            descriptions.append(f"Most {choice}s are right in {counts[-1]}, fewest in {counts[0]}.")
        elif counts:
            descriptions.append(f"Right {choice}s: {counts[0]}.")
    return " ".join(descriptions)
