"""Plotly renderer of figures for the screen: hover, zoom that survives a slider, light and dark.

`screen_layout` computes the layout, `plotly_marks` makes the traces of marks.
"""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.plotting import screen_layout, theme
from workbench.plotting.axes import cut_to, plotly_lines, plotly_text
from workbench.plotting.grammar import Axis, Figure, Heat
from workbench.plotting.plotly_marks import Screen, traces
from workbench.plotting.screen_layout import FONT, Layout
from workbench.plotting.word_selection import word_axes

_FAMILY = "Inter, Helvetica, Arial, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei'"
_SLANTS = [
    0,
    -30,
    -90,
]  # angles of labels that would touch; leftwards, since there is room left of the first panel only


def to_plotly(figure: Figure, dark: bool = False, width: int = screen_layout.DEFAULT_WIDTH) -> go.Figure:
    """The figure as a Plotly figure of fixed height; `dark` for a dark page.

    It stretches with its page and is laid out for a page of `width` pixels: on a narrower page texts may touch. Its
    `meta` has the axes along texts (`word_selection.word_axes`).
    """
    layout = screen_layout.lay_out(figure, width)
    figure, columns = layout.figure, layout.figure.columns
    rows = len(layout.heights)
    across = columns * layout.panel + (columns - 1) * layout.column_gap
    drawn = make_subplots(
        rows=rows, cols=columns, row_heights=list(layout.heights),
        shared_xaxes="columns" if figure.shared_x else False, shared_yaxes="rows" if figure.shared_y else False,
        vertical_spacing=layout.row_gap / (layout.area + layout.row_gap * (rows - 1)) if rows > 1 else 0.0,
        horizontal_spacing=layout.column_gap / across if columns > 1 else 0.0,
        subplot_titles=[plotly_lines(panel.title, layout.panel / FONT) for panel in figure.panels]
        if any(panel.title for panel in figure.panels) else None,
    )  # fmt: skip
    _set_layout(drawn, layout, dark)
    bars = _color_axes(drawn, layout)
    legend = figure.legend()
    screen = Screen(dark, layout.word_scale)
    named_series: set[str] = set()
    along_texts: dict[str, dict] = {}
    for number, panel in enumerate(figure.panels):
        cell = {"row": number // columns + 1, "col": number % columns + 1}
        for mark in panel.marks:
            color_axis = bars[screen_layout.bar_key(mark)] if isinstance(mark, Heat) else ""
            for trace in traces(mark, panel, screen, color_axis):
                show = mark in legend and mark.series not in named_series and trace.showlegend is not False
                if show:
                    trace.name = screen_layout.series_lines(mark.series, across)
                    named_series.add(mark.series)
                drawn.add_trace(trace.update(showlegend=show), **cell)
        _set_axes(drawn, layout, number, dark)
        subplot = drawn.get_subplot(**cell)
        along_texts |= word_axes(panel, subplot.yaxis.anchor, subplot.xaxis.anchor)
    drawn.update_layout(meta={"word_axes": along_texts})
    _link(drawn, figure)
    return drawn


def _set_layout(drawn: go.Figure, layout: Layout, dark: bool) -> None:
    page = theme.DARK if dark else theme.LIGHT
    title = screen_layout.title_lines(layout.figure, layout.width)
    drawn.update_layout(
        title={"text": title, "font": {"size": screen_layout.TITLE_FONT}, "x": 0, "xref": "paper", "y": 1,
               "yref": "container", "yanchor": "top", "pad": {"t": layout.title}},
        height=layout.height, uirevision=layout.figure.name, autosize=True, hovermode="closest", bargap=0,
        barmode="overlay",  # at the positions of the table: Plotly would put bars at the same position side by side
        margin={"l": layout.left, "r": layout.right, "t": layout.top, "b": layout.bottom, "autoexpand": False},
        font={"family": _FAMILY, "size": FONT, "color": page.text},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"bgcolor": page.ground, "font": {"color": page.text, "family": _FAMILY}, "align": "left"},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1 - layout.legend / layout.height,
                "yanchor": "top", "yref": "container", "itemsizing": "trace", "itemwidth": screen_layout.LEGEND_LINE},
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
    positions, texts = screen_layout.ticks(panel.y, height, vertical=True)
    y = positions, tuple(cut_to(text, screen_layout.text_room(layout.width)) for text in texts)
    cell = {"row": row + 1, "col": column + 1}
    slants = {"autotickangles": _SLANTS, "ticklabeloverflow": "allow"}  # else a long last label vanishes
    most = screen_layout.most_numbers(panel, layout.panel)
    drawn.update_xaxes(
        _axis(panel.x, plotly_lines(labels[0], layout.panel / FONT), x, dark), **slants, nticks=most, **cell
    )
    drawn.update_yaxes(_axis(panel.y, plotly_lines(labels[1], height / FONT), y, dark), **cell)


def _link(drawn: go.Figure, figure: Figure) -> None:
    """Let the x axis of each linked panel follow that of the first one."""
    first: dict[str, str] = {}
    for number, panel in enumerate(figure.panels):
        if panel.linked and not figure.shared_x:
            subplot = drawn.get_subplot(number // figure.columns + 1, number % figure.columns + 1)
            name = subplot.yaxis.anchor  # of the x axis: x, x2, …
            if first.setdefault(panel.linked, name) != name:
                subplot.xaxis.matches = first[panel.linked]


def _axis(axis: Axis, title: str, ticks: tuple[tuple[float, ...], tuple[str, ...]], dark: bool) -> dict:
    page = theme.DARK if dark else theme.LIGHT
    gridded = axis.kind == "number" and not axis.positions
    options: dict = {
        "title": {"text": title, "standoff": 6},
        "showgrid": gridded, "gridcolor": page.grid, "zeroline": False, "showline": True, "linecolor": page.text,
        "ticks": "outside", "ticklen": 3, "automargin": False, "visible": axis.visible,
        "type": "log" if axis.log else "linear", "minexponent": screen_layout.PLAIN_POWERS,
    }  # fmt: skip
    if axis.positions:
        positions, texts = ticks
        options |= {"tickmode": "array", "tickvals": np.array(positions), "ticktext": [plotly_text(t) for t in texts]}
    if axis.range is not None:
        low, high = (math.log10(end) for end in axis.range) if axis.log else axis.range
        options["range"] = [high, low] if axis.reversed else [low, high]
    elif axis.reversed:
        options["autorange"] = "reversed"
    return options


def _color_axes(drawn: go.Figure, layout: Layout) -> dict[screen_layout.BarKey, str]:
    """Add one color axis with a thin bar for each scale, beside the panels that share it."""
    names: dict[screen_layout.BarKey, str] = {}
    for key, (slot, first, last) in layout.bars.items():
        role, limits, label = key
        scale = theme.color_scale(role, limits)
        low, high = (drawn.get_subplot(row + 1, 1).yaxis.domain[end] for row, end in ((last, 0), (first, 1)))
        names[key] = "coloraxis" + (str(len(names) + 1) if names else "")
        bar = {"thickness": screen_layout.BAR, "thicknessmode": "pixels", "outlinewidth": 0,
               "xpad": 6 + screen_layout.BAR_ROOM * slot, "ypad": 0, "y": (low + high) / 2, "len": high - low,
               "tickvals": list(scale.ticks), "ticktext": list(scale.texts),
               "title": {"text": plotly_text(label), "side": "right"}}  # fmt: skip
        drawn.update_layout({names[key]: {"colorscale": scale.stops(), "cmin": scale.low, "cmax": scale.high,
                                          "colorbar": bar}})  # fmt: skip
    return names
