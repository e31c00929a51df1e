"""Choices whose right answer is known: the share that is right, by how far back it was decided, of every system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Panel, Points, SeriesStyle

_COLUMNS = ("choice", "system", "n", "right", "wrong", "undecidable", "share", "low", "high")


def choices(
    table: pd.DataFrame,
    by: str,
    titles: Mapping[str, str],
    bound: str = "",
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """A panel a kind of choice, in percent over the values of `by`; `share`, `low`, `high` are fractions.

    titles: of the panels, by choice. bound: the system that is no system but what a simple rule reaches, in grey. Below
    a value stands how many choices there are, and of how many of them nobody can tell who was right is in the table.
    """
    require_columns(table, (*_COLUMNS, by), "table")
    systems = [name for name in dict.fromkeys(table["system"]) if name != bound]
    looks = {**theme.styles(systems, styles), bound: theme.BOUND}
    shown = [choice for choice in titles if choice in set(table["choice"])]
    panels = tuple(_panel(table[table["choice"] == choice], by, titles[choice], looks) for choice in shown)
    return Figure(
        "true-choices", "Choices", panels, caption, _summary(table, systems), columns=len(panels), width="page"
    )


def _panel(table: pd.DataFrame, by: str, title: str, looks: Mapping[str, SeriesStyle]) -> Panel:
    values, systems = (list(dict.fromkeys(table[name])) for name in (by, "system"))
    aside = side_by_side(systems)
    placed = table.assign(
        place=[values.index(value) + aside[system] for value, system in zip(table[by], table["system"], strict=True)],
        **{f"{name}_percent": 100 * table[name] for name in ("share", "low", "high")},
    )
    marks: list[Mark] = []
    for system in systems:
        rows = placed[placed["system"] == system].dropna(subset="share")
        look = replace(looks[system], dash="none", size=5.0)
        hover = ("n", "right", "wrong", "undecidable")
        marks.append(
            Points(rows, "place", "share_percent", system, look, hover, low="low_percent", high="high_percent")
        )
    counts = table.groupby(by)["n"].first()
    axis = category_axis([f"{value} (n = {counts[value]})" for value in values])
    return Panel(tuple(marks), axis, Axis("right (%)", range=(0.0, 104.0)), 1.4, title)


def _summary(table: pd.DataFrame, systems: list[str]) -> str:
    said = []
    for (choice, system), rows in table[table["system"].isin(systems)].groupby(["choice", "system"], sort=False):
        right, decided = int(rows["right"].sum()), int((rows["right"] + rows["wrong"]).sum())
        said.append(f"{system} gets {right} of {decided} {choice}s right")
    return f"{'; '.join(said)}."
