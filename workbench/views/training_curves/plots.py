"""Plots of training curves over steps, epochs, tokens or seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, SeriesStyle

_COLUMNS = ("run", "step", "name", "value")
FEWEST_SMOOTHED = 30  # fewest values to smooth: an exponential mean of fewer only lags behind
_PLACES = {"step": "update", "epoch": "epoch", "tokens": "target tokens", "seconds": "seconds"}


def training_curves(
    table: pd.DataFrame,
    names: Sequence[str] | None = None,
    x: str = "step",
    smoothing: float = 0.0,
    log_y: Sequence[str] = (),
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """One panel for each logged quantity, one line for each run.

    With `smoothing` in (0, 1) lines of at least 30 values are drawn pale below their exponential mean; 0 (the default)
    draws the logged values. Raises ValueError for a quantity that no run logged.
    """
    require_columns(table, (*_COLUMNS, x), "table")
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing is {smoothing}; it must be at least 0 (none) and below 1")
    logged = list(dict.fromkeys(table["name"]))
    names = list(names or logged)
    for name in names:
        if name not in logged:
            raise ValueError(f"no run logged {name!r}; logged are {', '.join(logged)}")
    runs = list(dict.fromkeys(table["run"]))
    series_styles = theme.styles(runs, styles)
    panels = []
    for name in names:
        marks: list[Mark] = []
        for run in runs:
            rows = table[(table["name"] == name) & (table["run"] == run)].dropna(subset=[x]).sort_values(x)
            if len(rows):
                marks += _curve(rows, run, x, smoothing, series_styles[run])
        axis = Axis(name.replace("_", " "), log=name in log_y)
        panels.append(Panel(tuple(marks), Axis(_PLACES.get(x, x)), axis, height=1.2))
    smoothed = any(mark.y == "smoothed" for panel in panels for mark in panel.marks)
    mean_note = f" Dark: exponential mean, weight {smoothing:g} on the past; pale: as logged."
    few_note = f" Lines of fewer than {FEWEST_SMOOTHED} values are as logged." if smoothing else ""
    sides = {name.partition("_")[0] for name in names if name.endswith("loss")}
    loss_note = " Losses are nats per target token." if sides else ""
    if sides == {"train", "dev"}:
        loss_note += " Those of training are with dropout and label smoothing, those of dev without."
    note = f"{mean_note if smoothed else ''}{few_note}{loss_note}"
    return Figure(
        "training-curves",
        "Training curves",
        tuple(panels),
        caption=f"Training of {', '.join(runs)} against {_PLACES.get(x, x)}.{note}",
        summary=_last_values(table, names),
        shared_x=True,
    )


def _curve(rows: pd.DataFrame, run: str, x: str, smoothing: float, style: SeriesStyle) -> list[Mark]:
    if not smoothing or len(rows) < FEWEST_SMOOTHED:
        return [Line(rows, x, "value", run, style)]
    raw = replace(theme.pale(style), marker="none", dash="solid")
    smooth = rows.assign(smoothed=rows["value"].ewm(alpha=1.0 - smoothing, ignore_na=True).mean())
    return [Line(rows, x, "value", run, raw, legend=False), Line(smooth, x, "smoothed", run, style)]


def _last_values(table: pd.DataFrame, names: Sequence[str]) -> str:
    """Of each quantity the runs with the lowest and the highest last value."""
    last = table.dropna(subset=["value"]).sort_values("step").groupby(["name", "run"])["value"].last()
    curves = []
    for name in names:
        if name not in last.index:
            continue
        values = last[name].sort_values()
        ends = [f"{values.index[end]} ({values.iloc[end]:.3g})" for end in (0, -1)]
        quantity = name.replace("_", " ")
        lowest, highest = (f"{values.iloc[end]:.3g}" for end in (0, -1))
        if len(values) == 1:
            curves.append(f"{quantity}: {ends[0]}")
        elif lowest == highest:
            curves.append(f"{quantity} is the same in all runs ({lowest})")
        else:
            curves.append(f"{quantity} is lowest in {ends[0]}, highest in {ends[1]}")
    return f"At the end {'; '.join(curves)}."
