"""Draws a figure for the screen with Plotly: hover, zoom that survives a slider, light and dark.

Arrays go as typed arrays, never as lists. Texts pass through `plotly_text`, since Plotly reads HTML and TeX in them.
Where everything stands is worked out in `screen_layout`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures import screen_layout, theme
from workbench.figures.axes import cut_to, plotly_lines, plotly_text
from workbench.figures.grammar import (
    Axis,
    Bars,
    Figure,
    Heat,
    Labels,
    Line,
    Mark,
    Panel,
    Points,
    Rule,
    Segments,
    SeriesStyle,
)
from workbench.figures.screen_layout import FONT, Layout

_FAMILY = "Inter, Helvetica, Arial, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei'"
_PIXELS_PER_POINT = 1.9  # marks are given in points at final size on paper; the screen shows them larger
_MOST_MARKERS = 12
_MOST_HOVER_TEXTS = 6_000
_HOVER_CHARACTERS = 80  # on a line; Plotly breaks none by itself
_PLACES = {"centre": "middle center", "right": "middle right", "left": "middle left", "above": "top center",
           "below": "bottom center"}  # fmt: skip


@dataclass(frozen=True)
class _Screen:
    """What marks need to know of the page: dark or light, and the pixels of a point of the words in a panel."""

    dark: bool
    words: float


def to_plotly(figure: Figure, dark: bool = False, width: int = screen_layout.USUAL_WIDTH) -> go.Figure:
    """The figure as a Plotly figure, fixed in height; `dark` for a dark page.

    It stretches with its page, and is laid out for one of `width` pixels: on a narrower one texts may touch.
    """
    layout = screen_layout.lay_out(figure, width)
    figure, columns = layout.figure, layout.figure.columns
    rows = len(layout.heights)
    across = columns * layout.panel + (columns - 1) * layout.between
    drawn = make_subplots(
        rows=rows, cols=columns, row_heights=list(layout.heights),
        shared_xaxes="columns" if figure.shared_x else False, shared_yaxes="rows" if figure.shared_y else False,
        vertical_spacing=layout.gap / (layout.area + layout.gap * (rows - 1)) if rows > 1 else 0.0,
        horizontal_spacing=layout.between / across if columns > 1 else 0.0,
        subplot_titles=[plotly_lines(panel.title, layout.panel / FONT) for panel in figure.panels]
        if any(panel.title for panel in figure.panels) else None,
    )  # fmt: skip
    _set_layout(drawn, layout, dark)
    bars = _colour_axes(drawn, layout)
    legend = figure.legend()
    screen = _Screen(dark, layout.words)
    named: set[str] = set()
    for number, panel in enumerate(figure.panels):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        for mark in panel.marks:
            for trace in _traces(mark, panel, screen, bars):
                show = mark in legend and mark.series not in named and trace.showlegend is not False
                if show:
                    trace.name = screen_layout.series_lines(mark.series, across)
                    named.add(mark.series)
                drawn.add_trace(trace.update(showlegend=show), **place)
        _set_axes(drawn, layout, number, dark)
    return drawn


def _set_layout(drawn: go.Figure, layout: Layout, dark: bool) -> None:
    page = theme.DARK if dark else theme.LIGHT
    title = screen_layout.title_lines(layout.figure, layout.width)
    drawn.update_layout(
        title={"text": title, "font": {"size": screen_layout.TITLE_FONT}, "x": 0, "xref": "paper", "y": 1,
               "yref": "container", "yanchor": "top", "pad": {"t": layout.title}},
        height=layout.height, uirevision=layout.figure.name, autosize=True, hovermode="closest", bargap=0,
        margin={"l": layout.left, "r": layout.right, "t": layout.top, "b": layout.bottom, "autoexpand": False},
        font={"family": _FAMILY, "size": FONT, "color": page.text},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"bgcolor": page.ground, "font": {"color": page.text, "family": _FAMILY}, "align": "left"},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1 - layout.legend / layout.height,
                "yanchor": "top", "yref": "container", "itemsizing": "constant"},
    )  # fmt: skip
    drawn.update_annotations(font={"size": FONT})


def _set_axes(drawn: go.Figure, layout: Layout, number: int, dark: bool) -> None:
    figure, panel = layout.figure, layout.figure.panels[number]
    row, column = divmod(number, figure.columns)
    height = layout.heights[row]
    labels = (
        "" if figure.shared_x and number + figure.columns < len(figure.panels) else panel.x.label,
        "" if figure.shared_y and column else panel.y.label,
    )
    x = screen_layout.ticks(panel.x, layout.panel)
    positions, texts = screen_layout.ticks(panel.y, height, beside=True)
    y = positions, tuple(cut_to(text, screen_layout.text_room(layout.width)) for text in texts)
    place = {"row": row + 1, "col": column + 1}
    drawn.update_xaxes(_axis(panel.x, plotly_lines(labels[0], layout.panel / FONT), x, dark), **place)
    drawn.update_yaxes(_axis(panel.y, plotly_lines(labels[1], height / FONT), y, dark), **place)


def _axis(axis: Axis, title: str, ticks: tuple[tuple[float, ...], tuple[str, ...]], dark: bool) -> dict:
    page = theme.DARK if dark else theme.LIGHT
    gridded = axis.kind == "number" and not axis.positions
    made: dict = {
        "title": {"text": title, "standoff": 6},
        "showgrid": gridded, "gridcolor": page.grid, "zeroline": False, "showline": True, "linecolor": page.text,
        "ticks": "outside", "ticklen": 3, "automargin": False, "visible": axis.visible,
        "type": "log" if axis.log else "linear",
    }  # fmt: skip
    if axis.positions:
        positions, texts = ticks
        made |= {"tickmode": "array", "tickvals": np.array(positions), "ticktext": [plotly_text(t) for t in texts]}
    if axis.range is not None:
        low, high = (math.log10(end) for end in axis.range) if axis.log else axis.range
        made["range"] = [high, low] if axis.reversed else [low, high]
    elif axis.reversed:
        made["autorange"] = "reversed"
    return made


def _colour_axes(drawn: go.Figure, layout: Layout) -> dict[screen_layout.BarKey, str]:
    """One colour axis with a thin bar for each scale, beside the panels that share it."""
    names: dict[screen_layout.BarKey, str] = {}
    for key, (slot, first, last) in layout.bars.items():
        role, limits, label = key
        scale = theme.colour_scale(role, limits, paper=False)
        low, high = (drawn.get_subplot(row + 1, 1).yaxis.domain[end] for row, end in ((last, 0), (first, 1)))
        names[key] = "coloraxis" + (str(len(names) + 1) if names else "")
        bar = {"thickness": screen_layout.BAR, "thicknessmode": "pixels", "outlinewidth": 0,
               "xpad": 6 + screen_layout.BAR_ROOM * slot, "ypad": 0, "y": (low + high) / 2, "len": high - low,
               "tickvals": list(scale.ticks), "ticktext": list(scale.texts),
               "title": {"text": plotly_text(label), "side": "right"}}  # fmt: skip
        drawn.update_layout({names[key]: {"colorscale": scale.stops(), "cmin": scale.low, "cmax": scale.high,
                                          "colorbar": bar}})  # fmt: skip
    return names


def _traces(mark: Mark, panel: Panel, screen: _Screen, bars: dict[screen_layout.BarKey, str]) -> list:
    if isinstance(mark, Heat):
        return [_heat(mark, panel, bars[screen_layout.bar_key(mark)])]
    if isinstance(mark, Labels):
        return _labels(mark, screen)
    return _MAKE[type(mark)](mark, panel, screen.dark)


def _number(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.4g}"
    return _broken(str(value))


def _broken(text: str) -> str:
    """A text on as many lines as it needs."""
    starts = range(0, max(1, len(text)), _HOVER_CHARACTERS)
    return "<br>".join(plotly_text(text[start : start + _HOVER_CHARACTERS]) for start in starts)


def _hover(mark: Mark, panel: Panel) -> dict:
    """One order everywhere: series, x, y, value or interval, then the mark's own columns."""
    if len(mark.table) > _MOST_HOVER_TEXTS:
        return {"hovertemplate": f"{plotly_text(mark.series)}<br>%{{x}}<br>%{{y:.4g}}<extra></extra>"}
    axes = {mark.x: panel.x, mark.y: panel.y}
    table = mark.rows()
    lines = []
    for row in table.to_dict("records"):
        said = [plotly_text(mark.series)] if mark.series else []
        for column, value in row.items():
            axis = axes.get(str(column))
            named = axis.text_at(float(value)) if axis is not None and axis.positions else None
            label = axis.label if axis is not None and axis.label else str(column).replace("_", " ")
            shown = f"{_broken(named)} ({_number(value)})" if named is not None else _number(value)
            said.append(f"{plotly_text(label)}: {shown}")
        lines.append("<br>".join(said))
    return {"hovertext": lines, "hoverinfo": "text"}


def _colour(style: SeriesStyle, dark: bool) -> str:
    return theme.on_page(style.colour, dark)


def _line_options(style: SeriesStyle, dark: bool) -> dict:
    return {"color": _colour(style, dark), "dash": style.dash, "width": max(1.0, style.width * _PIXELS_PER_POINT)}


def _marker_options(style: SeriesStyle, dark: bool) -> dict:
    symbol = style.marker + ("-open" if style.hollow else "")
    line = {"width": 1.5 if style.hollow else 0, "color": _colour(style, dark)}
    return {"color": _colour(style, dark), "symbol": symbol, "size": style.size * _PIXELS_PER_POINT, "opacity": 1,
            "line": line}  # fmt: skip


def _line(mark: Line, panel: Panel, dark: bool) -> list[go.Scatter]:
    x, y = mark.values(mark.x), mark.values(mark.y)
    wanted = ("lines", mark.style.dash != "none"), ("markers", mark.style.marker != "none")
    modes = [name for name, on in wanted if on]
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
    """The edges of a band; a missing value parts it, which Plotly's fill would bridge."""
    low, high = mark.values(str(mark.low)), mark.values(str(mark.high))
    red, green, blue = (int(_colour(mark.style, dark)[place : place + 2], 16) for place in (1, 3, 5))
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
    colour = _colour(mark.style, dark)
    inner = "rgba(0,0,0,0)" if mark.style.hollow else colour
    lengths = {"x": x - base, "y": y, "orientation": "h"} if mark.horizontal else {"x": x, "y": y - base}
    return [
        go.Bar(**lengths, base=base, width=mark.width, name=plotly_text(mark.series), legendgroup=mark.series,
               opacity=mark.style.opacity, marker={"color": inner, "line": {"color": colour, "width": 1}},
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
        look = {"color": _colour(mark.style, dark), "thickness": 1.4, "width": 3}
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


def _labels(mark: Labels, screen: _Screen) -> list[go.Scatter]:
    texts = [plotly_text(text) for text in mark.table[mark.text].astype(str)]
    size = mark.font_points * screen.words
    plain = _colour(mark.style, screen.dark)
    colour = plain if mark.ground is None else theme.ink(mark.values(mark.ground), paper=False)
    font = {"size": size, "color": colour, "weight": "bold" if mark.bold else "normal"}
    # Plotly keeps a text off its marker by the marker's size: an invisible one makes the gap.
    gap = {"size": 2.0 * mark.offset_points * _PIXELS_PER_POINT, "opacity": 0}
    return [
        go.Scatter(x=mark.values(mark.x), y=mark.values(mark.y), mode="markers+text", text=texts, textfont=font,
                   marker=gap, textposition=_PLACES[mark.align], opacity=mark.style.opacity, hoverinfo="skip",
                   showlegend=False, cliponaxis=False, name="labels")
    ]  # fmt: skip


def _rule(mark: Rule, panel: Panel, dark: bool) -> list[go.Scatter]:
    # A trace, not a shape: it stands in the legend and in the table of the other traces.
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
    found = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.zeros(0)
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)


def _heat(mark: Heat, panel: Panel, colour_axis: str) -> go.Heatmap:
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
        x=across.astype(float), y=down.astype(float), z=theme.shades(mark).astype(np.float32), coloraxis=colour_axis,
        name=plotly_text(mark.label), hoverongaps=False, showlegend=False, **hover,
    )  # fmt: skip


_MAKE: dict[type, Callable[..., list]] = {
    Line: _line,
    Bars: _bars,
    Points: _points,
    Segments: _segments,
    Rule: _rule,
}
