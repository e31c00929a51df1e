"""Marks of a figure as traces of Plotly with hover texts.

Arrays are passed as typed arrays, never as lists. Texts pass through `plotly_text`, since Plotly reads HTML and TeX in
them. Knows a panel and whether its page is dark, not the position of the panel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench.plotting import theme
from workbench.plotting.axes import plotly_text, with_drawn_pieces
from workbench.plotting.grammar import (
    Bars,
    Heat,
    Labels,
    Line,
    Mark,
    Outlines,
    Panel,
    Points,
    Rule,
    Segments,
    SeriesStyle,
)

_PIXELS_PER_POINT = 1.9  # marks are given in points at final size on paper; the screen shows them larger
_MOST_MARKERS = 12
_MOST_HOVER_TEXTS = 6_000
_HOVER_CHARACTERS = 80  # per line; Plotly does not break lines
_PLACES = {"centre": "middle center", "right": "middle right", "left": "middle left", "above": "top center",
           "below": "bottom center"}  # fmt: skip


@dataclass(frozen=True)
class Screen:
    """Properties of the page that marks need: dark or light, and the pixels of a point of the words in a panel."""

    dark: bool
    words: float


def traces(mark: Mark, panel: Panel, screen: Screen, color_axis: str = "") -> list:
    """The traces of a mark; color_axis: the name of a heat map's color axis."""
    if isinstance(mark, Heat):
        return [_heat(mark, panel, color_axis)]
    if isinstance(mark, Labels):
        return _labels(mark, screen)
    on_cells = any(isinstance(other, Heat) for other in panel.marks)  # which are white paper on a dark page too
    return _MAKE[type(mark)](mark, panel, screen.dark and not on_cells)


def _number(value: object) -> str:
    if not isinstance(value, float):
        return _broken(str(value))
    if 1000 <= abs(value) < 10_000_000:
        return f"{value:.0f}"
    return "–" if math.isnan(value) else f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.4g}"


def _broken(text: str) -> str:
    """The text, broken into lines."""
    starts = range(0, max(1, len(text)), _HOVER_CHARACTERS)
    return "<br>".join(plotly_text(text[start : start + _HOVER_CHARACTERS]) for start in starts)


def _hover(mark: Mark, panel: Panel) -> dict:
    """One order everywhere: series, x, y, value or interval, then the mark's own columns."""
    if len(mark.table) > _MOST_HOVER_TEXTS:
        return {"hovertemplate": f"{plotly_text(mark.series)}<br>%{{x}}<br>%{{y:.4g}}<extra></extra>"}
    axes = {mark.x: panel.x, mark.y: panel.y}
    table = with_drawn_pieces(mark.rows())
    lines = []
    for row in table.to_dict("records"):
        texts = [plotly_text(mark.series)] if mark.series else []
        for column, value in row.items():
            axis = axes.get(str(column))
            value_text = axis.text_at(float(value)) if axis is not None and axis.positions else None
            label = axis.label if axis is not None and axis.label else str(column).replace("_", " ")
            shown = f"{_broken(value_text)} ({_number(value)})" if value_text is not None else _number(value)
            texts.append(f"{plotly_text(label)}: {shown}")
        lines.append("<br>".join(texts))
    return {"hovertext": lines, "hoverinfo": "text"}


def _color(style: SeriesStyle, dark: bool) -> str:
    return theme.on_page(style.colour, dark)


def _line_options(style: SeriesStyle, dark: bool) -> dict:
    return {"color": _color(style, dark), "dash": style.dash, "width": max(1.0, style.width * _PIXELS_PER_POINT)}


def _marker_options(style: SeriesStyle, dark: bool) -> dict:
    symbol = style.marker + ("-open" if style.hollow else "")
    line = {"width": 1.5 if style.hollow else 0, "color": _color(style, dark)}
    return {"color": _color(style, dark), "symbol": symbol, "size": style.size * _PIXELS_PER_POINT, "opacity": 1,
            "line": line}  # fmt: skip


def _line(mark: Line, panel: Panel, dark: bool) -> list[go.Scatter]:
    x, y = mark.values(mark.x), mark.values(mark.y)
    modes_wanted = ("lines", mark.style.dash != "none"), ("markers", mark.style.marker != "none")
    modes = [name for name, on in modes_wanted if on]
    style = {} if mark.style.dash == "none" else {"line": _line_options(mark.style, dark)}
    if mark.style.marker != "none":
        style["marker"] = {**_marker_options(mark.style, dark), "maxdisplayed": _MOST_MARKERS if len(x) > 30 else 0}
    traces = []
    if mark.low is not None and mark.high is not None:
        traces += _band(mark, x, dark)
    return [
        *traces,
        go.Scatter(x=x, y=y, mode="+".join(modes) or "none", name=plotly_text(mark.series), legendgroup=mark.series,
                   opacity=mark.style.opacity, connectgaps=False, **style, **_hover(mark, panel)),
    ]  # fmt: skip


def _band(mark: Line, x: np.ndarray, dark: bool) -> list[go.Scatter]:
    """The edges of a band, split at missing values, which Plotly's fill would bridge."""
    low, high = mark.values(str(mark.low)), mark.values(str(mark.high))
    red, green, blue = (int(_color(mark.style, dark)[start : start + 2], 16) for start in (1, 3, 5))
    fill = f"rgba({red},{green},{blue},{mark.band_opacity})"
    traces = []
    for piece in np.ma.clump_unmasked(np.ma.masked_invalid(low + high)):
        around_x = np.concatenate([x[piece], x[piece][::-1]])
        around_y = np.concatenate([high[piece], low[piece][::-1]])
        traces.append(
            go.Scatter(x=around_x, y=around_y, mode="lines", line={"width": 0}, fill="toself", fillcolor=fill,
                       hoverinfo="skip", showlegend=False, legendgroup=mark.series, name="band")
        )  # fmt: skip
    return traces


def _bars(mark: Bars, panel: Panel, dark: bool) -> list[go.Bar]:
    x, y = mark.values(mark.x), mark.values(mark.y)
    base = mark.values(mark.base) if mark.base else np.zeros(len(mark.table))
    color = _color(mark.style, dark)
    inner = "rgba(0,0,0,0)" if mark.style.hollow else color
    lengths = {"x": x - base, "y": y, "orientation": "h"} if mark.horizontal else {"x": x, "y": y - base}
    return [
        go.Bar(**lengths, base=base, width=mark.width, name=plotly_text(mark.series), legendgroup=mark.series,
               opacity=mark.style.opacity, marker={"color": inner, "line": {"color": color, "width": 1}},
               **_hover(mark, panel))
    ]  # fmt: skip


def _points(mark: Points, panel: Panel, dark: bool) -> list[go.Scatter]:
    x, y = mark.values(mark.x), mark.values(mark.y)
    marker = _marker_options(mark.style, dark)
    if mark.size:
        marker["size"] = mark.values(mark.size) * _PIXELS_PER_POINT
    error = {}
    if mark.low is not None and mark.high is not None:
        along = x if mark.error_axis == "x" else y
        ends = {"array": mark.values(mark.high) - along, "arrayminus": along - mark.values(mark.low)}
        look = {"color": _color(mark.style, dark), "thickness": 1.4, "width": 3}
        error[f"error_{mark.error_axis}"] = {**ends, **look, "type": "data", "symmetric": False}
    return [
        go.Scatter(x=x, y=y, mode="markers", marker=marker, name=plotly_text(mark.series), legendgroup=mark.series,
                   opacity=mark.style.opacity, **error, **_hover(mark, panel))
    ]  # fmt: skip


def _segments(mark: Segments, panel: Panel, dark: bool) -> list[go.Scatter]:
    gap = np.full(len(mark.table), np.nan)
    x = np.stack([mark.values(mark.x), mark.values(mark.x_end), gap], axis=1).ravel()
    y = np.stack([mark.values(mark.y), mark.values(mark.y_end), gap], axis=1).ravel()
    return [
        go.Scatter(x=x, y=y, mode="lines", line=_line_options(mark.style, dark), name=plotly_text(mark.series),
                   legendgroup=mark.series, opacity=mark.style.opacity, hoverinfo="skip", connectgaps=False)
    ]  # fmt: skip


def _outlines(mark: Outlines, panel: Panel, dark: bool) -> list[go.Scatter]:
    x, y = mark.path()
    return [
        go.Scatter(x=x, y=y, mode="lines", line=_line_options(mark.style, dark), name=plotly_text(mark.series),
                   legendgroup=mark.series, opacity=mark.style.opacity, hoverinfo="skip", connectgaps=False)
    ]  # fmt: skip


def _labels(mark: Labels, screen: Screen) -> list[go.Scatter]:
    texts = [plotly_text(text) for text in mark.table[mark.text].astype(str)]
    size = mark.font_points * screen.words
    plain = _color(mark.style, screen.dark)
    on_cells = (False, mark.ground_role, mark.ground_limits)
    color = plain if mark.ground is None else theme.ink(mark.values(mark.ground), *on_cells)
    font = {"size": size, "color": color, "weight": "bold" if mark.bold else "normal"}
    # Plotly keeps a text off its marker by the marker's size: an invisible one makes the gap.
    gap = {"size": 2.0 * mark.offset_points * _PIXELS_PER_POINT, "opacity": 0}
    return [
        go.Scatter(x=mark.values(mark.x), y=mark.values(mark.y), mode="markers+text", text=texts, textfont=font,
                   marker=gap, textposition=_PLACES[mark.align], opacity=mark.style.opacity, hoverinfo="skip",
                   showlegend=False, cliponaxis=False, name="labels")
    ]  # fmt: skip


def _rule(mark: Rule, panel: Panel, dark: bool) -> list[go.Scatter]:
    # A trace, not a shape, so that it is in the legend and in the table of the other traces.
    across = panel.x if mark.horizontal else panel.y
    low, high = across.range or _extent(panel, horizontal=mark.horizontal)
    along, still = np.array([low, high]), np.full(2, mark.position)
    x, y = (along, still) if mark.horizontal else (still, along)
    return [
        go.Scatter(x=x, y=y, mode="lines", line=_line_options(mark.style, dark), name=plotly_text(mark.series),
                   legendgroup=mark.series, opacity=mark.style.opacity, hoverinfo="skip")
    ]  # fmt: skip


def _extent(panel: Panel, horizontal: bool) -> tuple[float, float]:
    values = [m.values(m.x if horizontal else m.y) for m in panel.marks if not isinstance(m, Rule)]
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.zeros(0)
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)


def _heat(mark: Heat, panel: Panel, color_axis: str) -> go.Heatmap:
    matrix, across, down = mark.cells()
    hover = _hover(mark, panel)
    if "hovertext" in hover:
        texts = np.full(matrix.shape, "", dtype=object)
        rows, columns = mark.values(mark.y).astype(int) - down[0], mark.values(mark.x).astype(int) - across[0]
        texts[rows, columns] = hover["hovertext"]
        hover["hovertext"] = texts.tolist()
    else:
        hover = {
            "customdata": matrix.astype(np.float32),  # the values; z are shades
            "hovertemplate": "%{x}<br>%{y}<br>%{customdata:.3f}<extra></extra>",
        }
    return go.Heatmap(
        x=across.astype(float), y=down.astype(float), z=theme.shades(mark).astype(np.float32), coloraxis=color_axis,
        name=plotly_text(mark.label), hoverongaps=False, showlegend=False, **hover,
    )  # fmt: skip


_MAKE: dict[type, Callable[..., list]] = {
    Line: _line,
    Bars: _bars,
    Points: _points,
    Segments: _segments,
    Outlines: _outlines,
    Rule: _rule,
}
