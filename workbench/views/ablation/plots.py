"""Plots of ablations: scores or costs over the values of one option, with the system without it as a rule.

Values are numbers (on a logarithmic axis if their range is large) or names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Mark, Panel, Points, SeriesStyle, rule

_TABLE = ("series", "value", "score", "low", "high", "seeds")
_DIFFERENCES = ("series", "value", "test", "delta", "low", "high", "seeds")
_SEEDS = ("series", "value", "seed", "score")
_COSTS = ("series", "value", "work", "ratio")
MEMORY = "memory"  # value of `work` whose ratio is not a speed
MIN_LOG_RATIO = 16.0  # of the largest to the smallest value: from here on the axis is logarithmic
_OFFSET = 0.14  # horizontal offset between series at the same name


def ablation(
    table: pd.DataFrame,
    option: str,
    metric: str,
    seeds: pd.DataFrame | None = None,
    baseline: tuple[str, float] | None = None,
    reported: pd.DataFrame | None = None,
    reported_baseline: float | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Mean scores with intervals, seeds as pale dots, reported scores as hollow points in a separate panel.

    `value` is a number or a name, in the order of the axis; `low` and `high` bound the interval. baseline: name and
    score of the system without the option. Reported scores are on other data: only the curves' shapes are comparable.
    """
    require_columns(table, _TABLE, "table")
    positions, x = _axis([*table["value"], *(() if reported is None else reported["value"])], option)
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names, styles)
    marks: list[Mark] = []
    if baseline is not None:
        marks.append(rule(baseline[1], series=baseline[0], style=replace(theme.BASELINE, marker="none")))
    for number, name in enumerate(names):
        offset = 0.0 if x.kind == "number" else (number - (len(names) - 1) / 2) * _OFFSET
        marks += _interval_marks(
            _series_rows(table, name, positions, offset), "score", name, series_styles[name], x.kind == "number"
        )
        if seeds is not None:
            require_columns(seeds, _SEEDS, "seeds")
            dots = replace(series_styles[name], dash="none", marker="circle", size=2.5, opacity=0.45)
            seed_rows = _series_rows(seeds, name, positions, offset)
            marks.append(Points(seed_rows, "place", "score", name, dots, ("setting", "seed"), False))
    best = table.iloc[int(table["score"].to_numpy().argmax())]
    top = best["score"] if pd.isna(best["high"]) else best["high"]  # above its interval
    best_label = pd.DataFrame({"place": [positions[best["value"]]], "score": [top], "text": [f"{best['score']:.2f}"]})
    marks.append(Labels(best_label, "place", "score", align="above", offset_points=5.0))
    panels = [Panel(tuple(marks), x, Axis(metric), 1.4, "ours" if reported is not None else "")]
    if reported is not None:
        panels.append(_reported_panel(reported, positions, x, metric, reported_baseline))
    return Figure(
        "ablation",
        "One option at several values",
        tuple(panels),
        f"{caption} The axis need not start at zero.".strip(),
        _summary(table, option, metric, baseline),
        "page" if reported is not None else "column",
        columns=len(panels),
    )


def _interval_marks(rows: pd.DataFrame, y: str, name: str, style: SeriesStyle, is_numeric: bool) -> list[Mark]:
    """Means with intervals, joined by a line if values are numbers."""
    hover = ("setting", "seeds")
    bars = replace(style, dash="none")
    points = Points(rows, "place", y, name, bars, hover, not is_numeric, low="low", high="high")
    return [Line(rows, "place", y, name, style, hover), points] if is_numeric else [points]


def _reported_panel(
    reported: pd.DataFrame, positions: dict[Any, float], x: Axis, metric: str, baseline: float | None
) -> Panel:
    rows = _reported_rows(reported, positions)
    marks: list[Mark] = [Points(rows, "place", "score", "reported", theme.REPORTED, ("setting",))]
    if baseline is not None:
        marks.append(rule(baseline, series="reported baseline", style=SeriesStyle(theme.NEUTRAL, "dot", "none")))
    return Panel(tuple(marks), x, Axis(metric), 1.4, "reported, on other data")


def differences(table: pd.DataFrame, option: str, metric: str, caption: str = "") -> Figure:
    """Differences to the baseline with intervals, a rule at zero, a panel for each test set; `value` as in `ablation`.

    A line joins the values of a system; systems with the same value stand side by side.
    """
    require_columns(table, _DIFFERENCES, "table")
    positions, x = _axis(list(table["value"]), option)
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names)
    width = _OFFSET if x.range is None or x.kind != "number" else 0.02 * (x.range[1] - x.range[0])
    panels = []
    for test in dict.fromkeys(table["test"]):
        marks: list[Mark] = [rule(0.0, series="baseline", style=replace(theme.BASELINE, marker="none"))]
        for number, name in enumerate(names):
            offset = (number - (len(names) - 1) / 2) * width
            rows = _series_rows(table[table["test"] == test], name, positions, offset)
            marks += _interval_marks(rows, "delta", name, series_styles[name], x.kind == "number")
        panels.append(Panel(tuple(marks), x, Axis(f"{metric}, difference"), 1.4, test))
    largest, smallest = (table.iloc[int(pick(table["delta"].to_numpy()))] for pick in (np.argmax, np.argmin))
    return Figure(
        "ablation-differences",
        "Differences by one option",
        tuple(panels),
        caption,
        f"The difference in {metric} is largest with {option} {_text(largest['value'])} ({largest['series']}, "
        f"{largest['test']}, {largest['delta']:+.2f}), smallest with {_text(smallest['value'])} "
        f"({smallest['series']}, {smallest['test']}, {smallest['delta']:+.2f}).",
        "page",
        columns=len(panels),
    )


def ablation_cost(
    table: pd.DataFrame,
    option: str,
    baseline: str,
    reported: pd.DataFrame | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Speed of training and decoding and memory, relative to the baseline (rule at one), on axes from zero."""
    require_columns(table, _COSTS, "table")
    reported = pd.DataFrame(columns=["value", "work", "ratio"]) if reported is None else reported
    positions, x = _axis([*table["value"], *reported["value"]], option)
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names, styles)
    panels = []
    memory, speeds = (table[(table["work"] == MEMORY) == is_memory] for is_memory in (True, False))
    for work in dict.fromkeys(table["work"]):
        marks: list[Mark] = [rule(1.0, series=baseline, style=replace(theme.BASELINE, marker="none"))]
        for name in names:
            rows = _series_rows(table[table["work"] == work], name, positions)
            is_numeric = x.kind == "number"
            mark = Line if is_numeric else Points
            marks.append(mark(rows, "place", "ratio", name, series_styles[name], ("setting",)))
        reported_rows = reported[reported["work"] == work]
        if len(reported_rows):
            rows = _reported_rows(reported_rows, positions)
            marks.append(Points(rows, "place", "ratio", "reported", theme.REPORTED, ("setting",)))
        label = f"training {work}" if work == MEMORY else f"{work} speed"
        top = 1.06 * max(1.0, *(memory["ratio"] if work == MEMORY else [*speeds["ratio"], *reported["ratio"]]))
        panels.append(Panel(tuple(marks), x, Axis(label, range=(0.0, top)), 1.2))
    slowest = speeds.iloc[int(speeds["ratio"].to_numpy().argmin())]
    memory_text = f" The most memory is {memory['ratio'].max():.2f} times that of {baseline}." if len(memory) else ""
    return Figure(
        "ablation-cost",
        "What an option costs",
        tuple(panels),
        caption,
        f"The lowest speed is {slowest['ratio']:.2f} times that of {baseline}: {slowest['work']} with {option} "
        f"{_text(slowest['value'])} ({slowest['series']}).{memory_text}",
        "page",
        columns=len(panels),
    )


def _axis(values: Sequence[Any], option: str) -> tuple[dict[Any, float], Axis]:
    """Position of each value, and the axis: numbers (logarithmic from MIN_LOG_RATIO), or names one by one."""
    distinct = list(dict.fromkeys(values))
    label = option.replace("_", " ")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct):
        return {value: float(index) for index, value in enumerate(distinct)}, category_axis(
            list(map(_text, distinct)), label
        )
    distinct.sort()
    is_logarithmic = distinct[0] > 0 and distinct[-1] / distinct[0] >= MIN_LOG_RATIO
    value_positions = {value: math.log2(value) if is_logarithmic else float(value) for value in distinct}
    ends = (value_positions[distinct[0]], value_positions[distinct[-1]])
    margin = 0.06 * (ends[1] - ends[0]) or 0.5
    positions, texts = tuple(value_positions.values()), tuple(map(_text, distinct))
    return value_positions, Axis(label, "number", positions, texts, range=(ends[0] - margin, ends[1] + margin))


def _text(value: Any) -> str:
    if isinstance(value, tuple):  # a list of losses
        return "+".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _reported_rows(table: pd.DataFrame, positions: dict[Any, float]) -> pd.DataFrame:
    rows = table.assign(place=[positions[value] for value in table["value"]], setting=table["value"].map(_text))
    return rows.sort_values("place")


def _series_rows(table: pd.DataFrame, name: str, positions: dict[Any, float], offset: float = 0.0) -> pd.DataFrame:
    rows = table[table["series"] == name]
    rows = rows.assign(place=[positions[value] + offset for value in rows["value"]])
    return rows.assign(setting=rows["value"].map(_text)).sort_values("place")


def _summary(table: pd.DataFrame, option: str, metric: str, baseline: tuple[str, float] | None) -> str:
    scores = table["score"].to_numpy()
    best, worst = table.iloc[int(scores.argmax())], table.iloc[int(scores.argmin())]
    text = (
        f"{metric} is highest with {option} {_text(best['value'])} ({best['series']}, {best['score']:.2f}), lowest "
        f"with {_text(worst['value'])} ({worst['series']}, {worst['score']:.2f})"
    )
    return f"{text}; {baseline[0]} has {baseline[1]:.2f}." if baseline else f"{text}."
