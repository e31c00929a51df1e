"""Plot of BLEU, output length, empty outputs and search errors by beam size."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, Points, SeriesStyle, rule
from workbench.plotting.texts import by_system

_SIZES = ("system", "size", "bleu", "low", "high", "length_ratio", "empty_percent", "error_percent", "error_low",
          "error_high")  # fmt: skip


def beam_sizes(table: pd.DataFrame, caption: str = "", styles: dict[str, SeriesStyle] | None = None) -> Figure:
    """Four panels over the beam size (logarithmic axis) with 95% intervals.

    Percentages are of sentences; `error_percent` is NaN if no sentence was searched exactly.
    """
    require_columns(table, _SIZES, "table")
    systems = list(dict.fromkeys(table["system"]))
    series_styles = theme.styles(systems, styles)
    placed = table.assign(place=[math.log2(size) for size in table["size"]])
    sizes = sorted(set(table["size"]))
    positions = tuple(math.log2(size) for size in sizes)
    x = Axis(
        "beam size", "category", positions, tuple(map(str, sizes)), range=(positions[0] - 0.3, positions[-1] + 0.3)
    )
    panels = []
    for column, label, interval in (
        ("bleu", "BLEU", ("low", "high")),
        ("length_ratio", "length ratio", None),
        ("empty_percent", "empty outputs (%)", None),
        ("error_percent", "search errors (%)", ("error_low", "error_high")),
    ):
        marks: list[Mark] = [rule(1.0)] if column == "length_ratio" else []
        for system in systems:
            rows = placed[placed["system"] == system].sort_values("size").dropna(subset=[column])
            if rows.empty:
                continue
            marks.append(Line(rows, "place", column, system, series_styles[system], ("size",)))
            if interval:
                bars = replace(series_styles[system], dash="none")
                marks.append(
                    Points(
                        rows, "place", column, system, bars, ("size",), legend=False, low=interval[0], high=interval[1]
                    )
                )
        top = 1.1 * max(1.0, float(table["empty_percent"].max()))  # an axis of its own would show noise about zero
        bounds = (-0.04 * top, top) if column == "empty_percent" else None
        panels.append(Panel(tuple(marks), x, Axis(label, range=bounds), height=1.0))
    return Figure(
        "beam-sizes",
        "Beam sizes",
        tuple(panel for panel in panels if panel.marks),
        caption,
        _summary(table, systems),
        width="page",
        columns=2,
    )


def _summary(table: pd.DataFrame, systems: list[str]) -> str:
    best, last = {}, {}
    for system in systems:
        rows = table[table["system"] == system].sort_values("size")
        top, widest = rows.iloc[int(rows["bleu"].to_numpy().argmax())], rows.iloc[-1]
        beside = "" if top["size"] == widest["size"] else f", with {widest['size']}: {widest['bleu']:.2f}"
        best[system] = f"{top['size']} ({top['bleu']:.2f}{beside})"
        errors = "" if math.isnan(widest["error_percent"]) else f", {widest['error_percent']:.1f} % search errors"
        last[system] = f"{widest['empty_percent']:.1f} % empty outputs{errors}"
    return f"BLEU is highest with a beam of: {by_system(best)}. With the widest beam: {by_system(last)}."
