"""Plots of attention: one or several heat maps, and the alignment grid with links on its cells.

Input is a tidy table, one row per cell. Rows of a map are queries, columns are keys.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pandas as pd

from workbench.plotting.axes import token_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Figure, Heat, Mark, Panel, Points, SeriesStyle
from workbench.plotting.scale_end import AUTO, scale_end

_CELLS = ("panel", "query", "key", "query_token", "key_token", "weight")
_LINKS = ("panel", "query", "key", "kind")
_ROW_INCHES, _SMALL_ROW_INCHES = 0.15, 0.1
_LOWEST, _HIGHEST = 0.7, 7.0
_LABELS_ACROSS = 60  # most token labels in a row of maps
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
) -> Figure:
    """Heat map of each `panel` of the table; `query` and `key` count from 0.

    links: cells to mark, of a `kind` in LINKS. labels: of the x and the y axis. columns: maps in a row (None: nearly
    square grid). All maps share a color scale from 0 to `limit` (see `scale_end`), which the caption names.
    """
    require_columns(cells, _CELLS, "cells")
    end, end_text = scale_end(cells.groupby(["panel", "query"])["weight"].max().to_numpy(), limit)
    names = list(dict.fromkeys(cells["panel"]))
    columns = columns or math.ceil(math.sqrt(len(names)))
    small = len(names) > 6
    panels = []
    for panel in names:
        rows = cells[cells["panel"] == panel]
        marked = None if links is None else links[links["panel"] == panel]
        panels.append(_panel(rows, marked, panel if len(names) > 1 else "", labels, columns, small, end))
    return Figure(
        name,
        title,
        tuple(panels),
        f"{caption} {end_text}".strip(),
        _summary(cells, labels),
        "page" if columns > 1 or len(panels[0].x.texts) > 18 else "column",
        columns=min(columns, len(names)),
        shared_x=small and _same_axes(panels, "x"),
        shared_y=columns > 1 and _same_axes(panels, "y"),
    )


def _panel(
    cells: pd.DataFrame,
    links: pd.DataFrame | None,
    title: str,
    labels: tuple[str, str],
    columns: int,
    small: bool,
    end: float,
) -> Panel:
    across, down = _tokens(cells, "key"), _tokens(cells, "query")
    marks: list[Mark] = [Heat(cells, "key", "query", value="weight", limits=(0.0, end), label="attention")]
    for kind, (series, style) in LINKS.items():
        marked = None if links is None else links[links["kind"] == kind]
        if marked is not None and len(marked):
            marks.append(Points(marked, "key", "query", series, style))
    height = (_SMALL_ROW_INCHES if small else _ROW_INCHES) * len(down)
    x, y = token_axis(across, labels[0]), token_axis(down, labels[1], reversed=True)
    x = replace(x, every=max(x.every, math.ceil(len(across) * columns / _LABELS_ACROSS)))
    return Panel(tuple(marks), x, y, min(_HIGHEST, max(_LOWEST, height)), title)


def _tokens(cells: pd.DataFrame, side: str) -> list[str]:
    rows = cells.drop_duplicates(side).sort_values(side)
    return [str(token) for token in rows[f"{side}_token"]]


def _same_axes(panels: list[Panel], axis: str) -> bool:
    return all(getattr(panel, axis) == getattr(panels[0], axis) for panel in panels)


def _summary(cells: pd.DataFrame, labels: tuple[str, str]) -> str:
    maps = cells["panel"].nunique()
    first = cells[cells["panel"] == cells["panel"].iloc[0]]
    row = first.iloc[int(first["weight"].argmax())]
    which = f"Of {maps} maps the first: " if maps > 1 else ""
    return (
        f"{which}{first['query'].nunique()} × {first['key'].nunique()} cells; the largest weight, "
        f"{row['weight']:.2f}, is from {labels[1]} {row['query_token']!r} to {labels[0]} {row['key_token']!r}."
    )
