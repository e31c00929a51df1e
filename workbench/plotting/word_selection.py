"""Words of a translation that a reader selects: what a chart says of its axes, and the frames around selected words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.plotting.grammar import Axis, Heat, Panel, Side

Selection = Mapping[Side, int]  # the number of the selected word of a side, counted from 0
COLOR = "#D55E00"  # visible on light cells and on dark ones
_FILL = "rgba(213,94,0,0.12)"
_NO_FILL = "rgba(0,0,0,0)"  # over cells, which a color would change


def word_axes(panel: Panel, x_name: str, y_name: str) -> dict[str, dict[str, Any]]:
    """The axes of a panel that are along a text, by Plotly's names (x, y2, …), for the `meta` of its chart.

    `positions` and `words` turn a click into a word; `span` is half the width of a position, `across` the other axis.
    """
    fill = _NO_FILL if any(isinstance(mark, Heat) for mark in panel.marks) else _FILL
    return {
        name: {"side": axis.side, "positions": list(axis.positions), "words": list(axis.words), "span": _span(axis),
               "across": across, "fill": fill}
        for name, axis, across in ((x_name, panel.x, y_name), (y_name, panel.y, x_name))
        if axis.side is not None
    }  # fmt: skip


def _span(axis: Axis) -> float:
    return float(np.diff(axis.positions).min()) / 2 if len(axis.positions) > 1 else 0.5


def frames(chart: go.Figure, selection: Selection) -> list[dict[str, Any]]:
    """Plotly's shapes around the columns and rows of the selected words, in every panel along their text."""
    shapes = []
    for name, axis in ((chart.layout.meta or {}).get("word_axes") or {}).items():
        word = selection.get(axis["side"])
        places = [place for place, other in zip(axis["positions"], axis["words"], strict=True) if other == word]
        if not places:
            continue
        along, other = name[0], axis["across"][0]
        ends = {f"{along}0": min(places) - axis["span"], f"{along}1": max(places) + axis["span"]}
        shapes.append({
            "type": "rect", "line": {"color": COLOR, "width": 1.5}, "fillcolor": axis["fill"], **ends,
            f"{other}0": 0, f"{other}1": 1, f"{along}ref": name, f"{other}ref": f"{axis['across']} domain",
        })  # fmt: skip
    return shapes
