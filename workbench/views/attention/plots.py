"""Plots of attention: one or several heat maps, and the alignment grid with links on its cells.

Input is a tidy table, one row per cell. Rows of a map are queries, columns are keys.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pandas as pd

from workbench.plotting.axes import CONTINUES, token_axis, token_text
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Heat, Mark, Panel, Points, SeriesStyle, Side
from workbench.plotting.scale_end import AUTO, scale_end

_CELLS = ("panel", "query", "key", "query_token", "key_token", "weight")
_LINKS = ("panel", "query", "key", "kind")
_ROW_INCHES, _SMALL_ROW_INCHES = 0.15, 0.1
_LOWEST, _HIGHEST = 0.7, 7.0
MOST_BESIDE = 4  # maps of runs in a row; of more runs a narrow page has more rows, so that none is out of sight
_LABELS_ACROSS = 60  # most token labels in a row of small maps
# Label and style of each kind of link, in a color that is visible on light and on dark cells.
LINKS: dict[str, tuple[str, SeriesStyle]] = {
    "sure": ("gold, sure", SeriesStyle("#D55E00", "none", "square", hollow=True, size=7.0)),
    "possible": ("gold, possible", SeriesStyle("#D55E00", "none", "diamond", hollow=True, size=6.0)),
    "attention": ("most attended", SeriesStyle("#D55E00", "none", "circle", size=3.5)),
}


def attention_maps(
    cells: pd.DataFrame,
    links: pd.DataFrame | None = None,
    title: str = "Attention",
    labels: tuple[str, str] = ("source", "target"),
    columns: int | None = None,
    caption: str = "",
    name: str = "attention",
    limit: float | Literal["auto"] = AUTO,
    keys_down: bool = False,
    differences: pd.DataFrame | None = None,
    sides: tuple[Side | None, Side | None] = ("source", "target"),
) -> Figure:
    """Heat map of each `panel` of the table; `query` and `key` count from 0.

    links: cells to mark, of a `kind` in LINKS. labels: of keys and queries. columns: maps in a row (None: nearly square
    grid). keys_down: keys downwards, once for maps with the same keys, and queries across. differences: further maps of
    signed weights, as `cells`. sides: of keys and queries, for selecting words. All maps share a color scale from 0 to
    `limit`, differences one from -`limit` (see `scale_end`); the caption names both.
    """
    require_columns(cells, _CELLS, "cells")
    heats = []
    for table in [cells] if differences is None else [cells, differences]:
        signed = table is differences
        row_maxima = table["weight"].abs().groupby([table["panel"], table["query"]]).max()
        end, end_text = scale_end(row_maxima.to_numpy(), limit, signed)
        caption = f"{caption} {end_text}".lstrip()
        heats += [_heat(rows, end, signed, keys_down) for _, rows in table.groupby("panel", sort=False)]
    columns = min(columns or math.ceil(math.sqrt(len(heats))), len(heats))
    small = len(heats) > 6 and not keys_down
    axes = {"key": (labels[0], sides[0]), "query": (labels[1], sides[1])}
    panels = [_panel(heat, links, axes, small) for heat in heats]
    if any(text.startswith(CONTINUES) for panel in panels for text in (*panel.x.texts, *panel.y.texts)):
        caption += f" {CONTINUES} begins a piece that continues a word."
    if len(panels) == 1:
        panels = [replace(panels[0], title="")]
    if small:
        panels = [replace(panel, x=replace(panel.x, every=_every(panel.x, columns))) for panel in panels]
    return Figure(
        name,
        title,
        tuple(panels),
        caption,
        _summary(cells, labels),
        "page" if columns > 1 or len(panels[0].x.texts) > 18 else "column",
        columns=columns,
        side_by_side=columns > 1 and not small and len(panels) <= MOST_BESIDE,
        shared_x=small and _same_axes(panels, "x"),
        shared_y=columns > 1 and _same_axes(panels, "y"),
    )


def _heat(rows: pd.DataFrame, end: float, signed: bool, keys_down: bool) -> Heat:
    x, y = ("query", "key") if keys_down else ("key", "query")
    if signed:
        return Heat(rows, x, y, value="weight", role="signed", limits=(-end, end), label="difference")
    return Heat(rows, x, y, value="weight", limits=(0.0, end), label="attention")


def _panel(heat: Heat, links: pd.DataFrame | None, axes: dict[str, tuple[str, Side | None]], small: bool) -> Panel:
    """Panel of one map with the links on its cells; every token has a label unless the map is small."""
    title = str(heat.table["panel"].iloc[0])
    marks: list[Mark] = [heat]
    for kind, (series, style) in LINKS.items():
        marked = None if links is None else links[(links["panel"] == title) & (links["kind"] == kind)]
        if marked is not None and len(marked):
            marks.append(Points(marked, heat.x, heat.y, series, style))
    (x_label, x_side), (y_label, y_side) = axes[heat.x], axes[heat.y]
    x = token_axis(_tokens(heat.table, heat.x), x_label, side=x_side)
    y = token_axis(_tokens(heat.table, heat.y), y_label, reversed=True, side=y_side)
    if not small:
        x, y = replace(x, every=1), replace(y, every=1)
    height = (_SMALL_ROW_INCHES if small else _ROW_INCHES) * len(y.texts)
    return Panel(tuple(marks), x, y, min(_HIGHEST, max(_LOWEST, height)), title)


def _every(axis: Axis, columns: int) -> int:
    return max(axis.every, math.ceil(len(axis.texts) * columns / _LABELS_ACROSS))


def _tokens(cells: pd.DataFrame, side: str) -> list[str]:
    rows = cells.drop_duplicates(side).sort_values(side)
    return [str(token) for token in rows[f"{side}_token"]]


def _same_axes(panels: list[Panel], axis: str) -> bool:
    return all(getattr(panel, axis) == getattr(panels[0], axis) for panel in panels)


def _summary(cells: pd.DataFrame, labels: tuple[str, str]) -> str:
    """How sharp the maps are: the mean over a map's rows of their largest weight; of several maps the two extremes."""
    keys, queries = (label.split()[0] for label in labels)
    rows = {str(panel): rows for panel, rows in cells.groupby("panel", sort=False)}
    sharpness = {panel: table.groupby("query")["weight"].max().mean() for panel, table in rows.items()}
    if len(rows) > 1:
        sharpest, most_even = max(sharpness, key=sharpness.__getitem__), min(sharpness, key=sharpness.__getitem__)
        return (
            f"Sharpest is {sharpest}: on average the most attended {keys} token gets {sharpness[sharpest]:.2f} of a "
            f"{queries} token's attention; most even is {most_even}, with {sharpness[most_even]:.2f}."
        )
    ((panel, table),) = rows.items()
    largest = table.iloc[int(table["weight"].argmax())]
    query, key = (token_text(str(largest[side])) for side in ("query_token", "key_token"))
    return (
        f"{panel}: {query!r} attends most to {key!r} ({largest['weight']:.2f}); on average the most attended {keys} "
        f"token gets {sharpness[panel]:.2f} of a {queries} token's attention."
    )
