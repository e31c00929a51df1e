"""Plots of estimated and realized future cost, by step and over a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import token_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Bars, Figure, Line, Mark, Panel, Points, Segments, SeriesStyle, rule

_STEPS = ("step", "token", "log_prob", "estimated", "gate", "error")
_BINS = ("system", "bin", "mean_estimated", "mean_realised", "low", "high", "n")
_REALISED = SeriesStyle(theme.BLACK, "solid", "circle")
_ESTIMATED = SeriesStyle(theme.FUTURE, "dashdot", "triangle-up", size=4.5)
_GATE = SeriesStyle(theme.PAST, "solid", "square")
_ERROR = SeriesStyle(theme.NEUTRAL, "dot", "none", width=0.75)


def overlay(table: pd.DataFrame, title: str = "Future cost along a translation") -> Figure:
    """Log-probability of each word and its estimate one step before; below, the gate if there is one.

    `error` is estimated minus realized; `estimated` is NaN at the first step, `gate` is NaN without a gate (Model I).
    """
    require_columns(table, _STEPS, "table")
    table = table.sort_values("step")
    tokens = token_axis([str(token) for token in table["token"]], first=int(table["step"].iloc[0]), side="target")
    estimated_steps = table.dropna(subset=["estimated", "log_prob"])
    ends = estimated_steps.assign(end=estimated_steps["step"])
    marks: list[Mark] = [
        Segments(ends, "step", "log_prob", "error", _ERROR, legend=False, x_end="end", y_end="estimated"),
        Line(table, "step", "log_prob", "log P of the word", _REALISED, ("token",)),
        Line(table, "step", "estimated", "estimated one step before", _ESTIMATED, ("token", "error")),
    ]
    panels = [Panel(tuple(marks), tokens, Axis("log P (nats)"), height=1.2)]
    gated = bool(table["gate"].notna().any())
    if gated:
        gate = Line(table, "step", "gate", "gate", _GATE, ("token",), legend=False)
        panels.append(Panel((gate,), tokens, Axis("gate", range=(-0.05, 1.05)), height=0.5))
    mean = estimated_steps["error"].abs().mean()
    return Figure(
        "future-cost-overlay",
        title,
        tuple(panels),
        caption=f"Log-probability of each word and its estimate one step before.{' Below: the gate.' if gated else ''}",
        summary=f"Over {len(estimated_steps)} steps the estimate misses the log-probability by {mean:.2f} nats on "
        "average.",
        shared_x=True,
    )


def calibration(
    table: pd.DataFrame, systems: Sequence[str] | None = None, styles: dict[str, SeriesStyle] | None = None
) -> Figure:
    """Realized against estimated cost (−log P) by bins of the estimate, with intervals; below, the bin sizes."""
    require_columns(table, _BINS, "table")
    names = list(systems or dict.fromkeys(table["system"]))
    series_styles = theme.styles(names, styles)
    ends = table[["mean_estimated", "mean_realised"]].to_numpy(dtype=float)
    reach = pd.DataFrame({"mean_estimated": [ends.min(), ends.max()], "mean_realised": [ends.min(), ends.max()]})
    diagonal = Line(reach, "mean_estimated", "mean_realised", "perfect", rule(0).style)
    above: list[Mark] = [diagonal]
    below: list[Mark] = []
    for number, name in enumerate(names):
        rows = table[table["system"] == name].sort_values("mean_estimated")
        hover = ("bin", "n")
        above.append(Line(rows, "mean_estimated", "mean_realised", name, series_styles[name], hover))
        style = replace(series_styles[name], dash="none")
        above.append(Points(rows, "mean_estimated", "mean_realised", name, style, hover, False, "low", "high"))
        width = 0.6 * float(rows["mean_estimated"].diff().min()) / len(names) if len(rows) > 1 else 0.1
        shifted = rows.assign(place=rows["mean_estimated"] + (number - (len(names) - 1) / 2) * width)
        below.append(Bars(shifted, "place", "n", name, series_styles[name], hover, legend=False, width=width))
    x = Axis("estimated cost of the next word (nats)")
    return Figure(
        "future-cost-calibration",
        "Calibration of future cost",
        (Panel(tuple(above), x, Axis("realised cost (nats)"), 1.6), Panel(tuple(below), x, Axis("steps"), 0.35)),
        caption="Mean realised cost (−log P) of the next word, along the systems' own translations, in bins of its "
        "estimate, with 95% intervals by a bootstrap of sentences.",
        summary=_summary(table, names),
        shared_x=True,
    )


def _summary(table: pd.DataFrame, names: Sequence[str]) -> str:
    descriptions = []
    for name in names:
        rows = table[table["system"] == name]
        gap = float(((rows["mean_realised"] - rows["mean_estimated"]).abs() * rows["n"]).sum() / rows["n"].sum())
        descriptions.append(f"{name} is off by {gap:.2f} nats")
    return f"Weighted by the steps of each bin, {'; '.join(descriptions)}."
