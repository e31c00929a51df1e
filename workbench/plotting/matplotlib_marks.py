"""Marks of a figure drawn on Matplotlib's axes, and their legend handles.

Sizes are points at the final size. Knows a mark and its axes, no layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from workbench.plotting import theme
from workbench.plotting.grammar import Bars, Heat, Labels, Line, Mark, Outlines, Points, Rule, Segments, SeriesStyle

CELLS = "cells"  # the id of a heat map's cells, by which a color bar finds them
_DASHES = {
    "solid": "-",
    "dash": (0, (4, 2)),
    "dot": (0, (1, 1.5)),
    "dashdot": (0, (5, 1.5, 1, 1.5)),
    "longdash": (0, (8, 2)),
    "longdashdot": (0, (8, 1.5, 1, 1.5)),
    "none": "none",
}
_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "triangle-down": "v",
    "diamond": "D",
    "cross": "P",
    "x": "X",
    "pentagon": "p",
    "hexagon": "h",
    "star": "*",
    "none": "none",
}
_PLACES = {"centre": (0, 0, "center", "center"), "right": (1, 0, "left", "center"), "left": (-1, 0, "right", "center"),
           "above": (0, 1, "center", "bottom"), "below": (0, -1, "center", "top")}  # fmt: skip
_MOST_MARKERS = 12


def draw(mark: Mark, axes: Axes, grey: bool) -> None:
    """Draw a mark; `grey`: as on a grey printer."""
    _DRAW[type(mark)](mark, axes, grey)


def legend_handle(mark: Mark, grey: bool) -> Line2D | Patch:
    """The legend handle of a series."""
    color = _color(mark.style, grey)
    if isinstance(mark, Bars):
        face = "none" if mark.style.hollow else color
        return Patch(facecolor=face, edgecolor=color, alpha=mark.style.opacity)
    if isinstance(mark, Outlines):
        return Patch(facecolor="none", edgecolor=color, linewidth=mark.style.width, alpha=mark.style.opacity)
    markers = {} if isinstance(mark, Segments | Rule) else _marker_options(mark.style, grey)
    line = "none" if isinstance(mark, Points) else _DASHES[mark.style.dash]
    return Line2D([], [], color=color, linestyle=line, linewidth=mark.style.width, alpha=mark.style.opacity, **markers)


def _color(style: SeriesStyle, grey: bool) -> str:
    return theme.as_grey(style.colour) if grey else style.colour


def _marker_options(style: SeriesStyle, grey: bool) -> dict:
    color = _color(style, grey)
    return {
        "marker": _MARKERS[style.marker],
        "markersize": style.size,
        "markerfacecolor": "white" if style.hollow else color,
        "markeredgecolor": color,
        "markeredgewidth": 0.8 if style.hollow else 0.0,
    }


def _draw_line(mark: Line, axes: Axes, grey: bool) -> None:
    x, y = mark.values(mark.x), mark.values(mark.y)
    color = _color(mark.style, grey)
    if mark.low is not None and mark.high is not None:
        low, high = mark.values(mark.low), mark.values(mark.high)
        axes.fill_between(x, low, high, color=color, alpha=mark.band_opacity, linewidth=0)
    axes.plot(
        x, y, color=color, linestyle=_DASHES[mark.style.dash], linewidth=mark.style.width, alpha=mark.style.opacity,
        markevery=max(1, len(x) // _MOST_MARKERS), **_marker_options(mark.style, grey),
    )  # fmt: skip


def _draw_bars(mark: Bars, axes: Axes, grey: bool) -> None:
    position_column, end_column = (mark.y, mark.x) if mark.horizontal else (mark.x, mark.y)
    base = mark.values(mark.base) if mark.base else np.zeros(len(mark.table))
    color = _color(mark.style, grey)
    face = "none" if mark.style.hollow else color
    look: dict[str, Any] = {"edgecolor": color, "facecolor": face, "linewidth": 0.5, "alpha": mark.style.opacity}
    if mark.horizontal:
        axes.barh(mark.values(position_column), mark.values(end_column) - base, mark.width, left=base, **look)
    else:
        axes.bar(mark.values(position_column), mark.values(end_column) - base, mark.width, bottom=base, **look)


def _draw_points(mark: Points, axes: Axes, grey: bool) -> None:
    x, y = mark.values(mark.x), mark.values(mark.y)
    color = _color(mark.style, grey)
    if mark.low is not None and mark.high is not None:
        # Around the middle of the interval: a resampled interval need not contain the value.
        low, high = mark.values(mark.low), mark.values(mark.high)
        centers = {"x": x, "y": y, mark.error_axis: (low + high) / 2, f"{mark.error_axis}err": np.abs(high - low) / 2}
        axes.errorbar(**centers, fmt="none", ecolor=color, elinewidth=0.8, capsize=1.5, alpha=mark.style.opacity)
    diameter = mark.values(mark.size) if mark.size else np.full(len(x), mark.style.size)
    axes.scatter(
        x, y, s=diameter**2, marker=_MARKERS[mark.style.marker], alpha=mark.style.opacity, edgecolors=color,
        facecolors="none" if mark.style.hollow else color, linewidths=0.8 if mark.style.hollow else 0.0, zorder=3,
    )  # fmt: skip


def _draw_segments(mark: Segments, axes: Axes, grey: bool) -> None:
    gap = np.full(len(mark.table), np.nan)
    x = np.stack([mark.values(mark.x), mark.values(mark.x_end), gap], axis=1).ravel()
    y = np.stack([mark.values(mark.y), mark.values(mark.y_end), gap], axis=1).ravel()
    axes.plot(x, y, color=_color(mark.style, grey), linestyle=_DASHES[mark.style.dash], linewidth=mark.style.width,
              alpha=mark.style.opacity, solid_capstyle="round", zorder=1.5)  # fmt: skip


def _draw_outlines(mark: Outlines, axes: Axes, grey: bool) -> None:
    axes.plot(*mark.path(), color=_color(mark.style, grey), linestyle=_DASHES[mark.style.dash],
              linewidth=mark.style.width, alpha=mark.style.opacity, solid_joinstyle="miter", zorder=2.5)  # fmt: skip


def _draw_labels(mark: Labels, axes: Axes, grey: bool) -> None:
    across, up, horizontal, vertical = _PLACES[mark.align]
    texts = mark.table[mark.text].astype(str)
    colors = [_color(mark.style, grey)] * len(texts)
    if mark.ground is not None:
        colors = theme.ink(mark.values(mark.ground), grey, mark.ground_role, mark.ground_limits)
    for x, y, text, color in zip(mark.values(mark.x), mark.values(mark.y), texts, colors, strict=True):
        axes.annotate(
            text, (x, y), (across * mark.offset_points, up * mark.offset_points), textcoords="offset points",
            ha=horizontal, va=vertical, fontsize=mark.font_points, color=color,
            fontweight="bold" if mark.bold else "normal", alpha=mark.style.opacity, zorder=4, annotation_clip=True,
        )  # fmt: skip


def _draw_rule(mark: Rule, axes: Axes, grey: bool) -> None:
    draw = axes.axhline if mark.horizontal else axes.axvline
    draw(mark.position, color=_color(mark.style, grey), linestyle=_DASHES[mark.style.dash],
         linewidth=mark.style.width, alpha=mark.style.opacity, zorder=1)  # fmt: skip


def _draw_heat(mark: Heat, axes: Axes, grey: bool) -> None:
    matrix, across, down = mark.cells()
    scale = theme.color_scale(mark.role, mark.limits, grey)
    drawn = axes.pcolormesh(
        np.append(across, across[-1] + 1) - 0.5, np.append(down, down[-1] + 1) - 0.5,
        np.ma.masked_invalid(theme.shades(mark)),
        cmap=scale.map_name, vmin=scale.low, vmax=scale.high, edgecolors="face", linewidth=0.1,
        rasterized=matrix.size > theme.MOST_VECTOR_CELLS,
    )  # fmt: skip
    drawn.set_gid(CELLS)
    if grey and mark.role == "signed" and mark.signs:
        for row, column in np.argwhere(matrix < 0):
            axes.text(across[column], down[row], "−", ha="center", va="center", fontsize=theme.TICK_POINTS)


_DRAW: dict[type[Mark], Callable[..., None]] = {
    Line: _draw_line,
    Bars: _draw_bars,
    Points: _draw_points,
    Segments: _draw_segments,
    Outlines: _draw_outlines,
    Labels: _draw_labels,
    Rule: _draw_rule,
    Heat: _draw_heat,
}
