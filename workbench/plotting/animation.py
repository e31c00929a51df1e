"""Charts that play: Plotly's frames with a button and a slider, through several charts or along the x axis of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

_MILLISECONDS = 800  # of a frame
_CONTROLS = 100  # pixels below the chart
_BUTTON = 0.12  # of the chart's width, left of the slider
_CLEAR = "rgba(0,0,0,0)"


def through(charts: Sequence[go.Figure], labels: Sequence[str]) -> go.Figure:
    """A chart that plays through charts of the same panels and traces, one frame each; the last one stands at first.

    labels: of the frames. Raises ValueError for charts of other panels or traces.
    """
    shapes = {tuple((trace.type, trace.xaxis, trace.yaxis) for trace in chart.data) for chart in charts}
    if len(shapes) != 1 or len(labels) != len(charts):
        raise ValueError("only charts of the same panels and traces play as frames, and each needs a label")
    frames = [
        go.Frame(name=label, data=chart.data, layout={"annotations": chart.layout.annotations})
        for chart, label in zip(charts, labels, strict=True)
    ]
    return _playing(go.Figure(charts[-1]), frames)


def growing(chart: go.Figure, steps: Sequence[int]) -> go.Figure:
    """A chart whose points and lines appear from left to right, up to x = each of the steps in turn."""
    drawn = [np.asarray(trace.x, dtype=float) for trace in chart.data]
    heights = [np.asarray(trace.y, dtype=float) for trace in chart.data]
    frames = [
        go.Frame(
            name=str(step),
            data=[
                {"type": trace.type, "y": np.where(x <= step, y, np.nan)}
                for trace, x, y in zip(chart.data, drawn, heights, strict=True)
            ],
            traces=list(range(len(chart.data))),
        )
        for step in steps
    ]
    return _playing(go.Figure(chart), frames)


def _playing(chart: go.Figure, frames: list[go.Frame]) -> go.Figure:
    """The chart with its frames, and below it a button that plays them and a slider; the last frame stands at first."""
    before = chart.layout.height
    after = before + _CONTROLS
    still = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate", "transition": {"duration": 0}}
    moving = {"frame": {"duration": _MILLISECONDS, "redraw": True}, "transition": {"duration": 0}}
    height = -(chart.layout.margin.b + 6) / (before - chart.layout.margin.t - chart.layout.margin.b)
    controls = {"y": height, "yanchor": "top", "xanchor": "left"}
    play = {"label": "Play", "method": "animate", "args": [None, {**moving, "fromcurrent": False}]}
    pause = {"label": "Pause", "method": "animate", "args": [[None], {**still}]}
    steps = [{"label": frame.name, "method": "animate", "args": [[frame.name], still]} for frame in frames]
    chart.frames = frames
    chart.update_layout(
        height=after,
        margin={"b": chart.layout.margin.b + _CONTROLS},
        updatemenus=[{"type": "buttons", "direction": "left", "showactive": False, "x": 0, "pad": {"t": 14},
                      "bgcolor": _CLEAR,
                      "buttons": [play, pause], **controls}],
        sliders=[{"active": len(frames) - 1, "x": _BUTTON, "len": 1 - _BUTTON, "pad": {"l": 40, "t": 8},
                  "steps": steps, **controls}],
    )  # fmt: skip
    if chart.layout.legend.y is not None:  # measured from the container's lower edge
        chart.update_layout(legend={"y": 1 - (1 - chart.layout.legend.y) * before / after})
    return chart
