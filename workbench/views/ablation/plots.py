"""Ablations: a score, or what it costs, over the values of one option, the system without it as a rule.

Values are numbers (on an axis of doublings where they reach far) or names; which systems belong to which series was
decided before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Mark, Panel, Points, SeriesStyle, rule

_TABLE = ("series", "value", "score", "low", "high", "seeds")
_SEEDS = ("series", "value", "seed", "score")
_PRINTED = ("value", "score")
_COSTS = ("series", "value", "work", "ratio")
MEMORY = "memory"  # the work whose ratio is none of speeds
FAR = 16.0  # the ratio of the largest to the smallest value from which doublings are equal steps
_ASIDE = 0.14  # between series that stand at the same name


def ablation(
    table: pd.DataFrame,
    option: str,
    metric: str,
    seeds: pd.DataFrame | None = None,
    baseline: tuple[str, float] | None = None,
    printed: pd.DataFrame | None = None,
    printed_baseline: float | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Mean scores with intervals, seeds as pale dots; what a paper prints in a panel of its own, hollow.

    `value` is a number or a name, in the order of the axis; `low` and `high` are the ends of the interval. baseline:
    name and score of the system without the option. Scores of a paper are of other data: only shapes compare.
    """
    require_columns(table, _TABLE, "table")
    places, x = _axis([*table["value"], *(() if printed is None else printed["value"])], option)
    names = list(dict.fromkeys(table["series"]))
    chosen = theme.styles(names, styles)
    marks: list[Mark] = []
    if baseline is not None:
        marks.append(rule(baseline[1], series=baseline[0], style=replace(theme.BASELINE, marker="none")))
    for number, name in enumerate(names):
        aside = 0.0 if x.kind == "number" else (number - (len(names) - 1) / 2) * _ASIDE
        marks += _scores(_placed(table, name, places, aside), name, chosen[name], x.kind == "number")
        if seeds is not None:
            require_columns(seeds, _SEEDS, "seeds")
            dots = replace(chosen[name], dash="none", marker="circle", size=2.5, opacity=0.45)
            own = _placed(seeds, name, places, aside)
            marks.append(Points(own, "place", "score", name, dots, ("setting", "seed"), False))
    best = table.iloc[int(table["score"].to_numpy().argmax())]
    top = best["score"] if pd.isna(best["high"]) else best["high"]  # clear of its interval
    at = pd.DataFrame({"place": [places[best["value"]]], "score": [top], "text": [f"{best['score']:.2f}"]})
    marks.append(Labels(at, "place", "score", align="above", offset_points=5.0))
    panels = [Panel(tuple(marks), x, Axis(metric), 1.4, "ours" if printed is not None else "")]
    if printed is not None:
        panels.append(_of_paper(printed, places, x, metric, printed_baseline))
    return Figure(
        "ablation",
        "One option at several values",
        tuple(panels),
        f"{caption} The axis need not start at zero.".strip(),
        _summary(table, option, metric, baseline),
        "page" if printed is not None else "column",
        columns=len(panels),
    )


def _scores(rows: pd.DataFrame, name: str, style: SeriesStyle, joined: bool) -> list[Mark]:
    """A line where values are numbers, and the means with their intervals."""
    hover = ("setting", "seeds")
    bars = replace(style, dash="none")
    points = Points(rows, "place", "score", name, bars, hover, not joined, low="low", high="high")
    return [Line(rows, "place", "score", name, style, hover), points] if joined else [points]


def _of_paper(printed: pd.DataFrame, places: dict[Any, float], x: Axis, metric: str, baseline: float | None) -> Panel:
    rows = _printed(printed, places)
    marks: list[Mark] = [Points(rows, "place", "score", "printed", theme.PRINTED, ("setting",))]
    if baseline is not None:
        marks.append(rule(baseline, series="printed baseline", style=SeriesStyle(theme.NEUTRAL, "dot", "none")))
    return Panel(tuple(marks), x, Axis(metric), 1.4, "printed, on other data")


def ablation_cost(
    table: pd.DataFrame,
    option: str,
    baseline: str,
    printed: pd.DataFrame | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Speed of each work (training, decoding) and memory relative to the baseline, the rule at one; from zero, so that
    what costs nothing looks like it."""
    require_columns(table, _COSTS, "table")
    printed = pd.DataFrame(columns=["value", "work", "ratio"]) if printed is None else printed
    places, x = _axis([*table["value"], *printed["value"]], option)
    names = list(dict.fromkeys(table["series"]))
    chosen = theme.styles(names, styles)
    panels = []
    memory, speeds = (table[(table["work"] == MEMORY) == own] for own in (True, False))
    for work in dict.fromkeys(table["work"]):
        marks: list[Mark] = [rule(1.0, series=baseline, style=replace(theme.BASELINE, marker="none"))]
        for name in names:
            rows = _placed(table[table["work"] == work], name, places)
            joined = x.kind == "number"
            drawn = Line if joined else Points
            marks.append(drawn(rows, "place", "ratio", name, chosen[name], ("setting",)))
        theirs = printed[printed["work"] == work]
        if len(theirs):
            rows = _printed(theirs, places)
            marks.append(Points(rows, "place", "ratio", "printed", theme.PRINTED, ("setting",)))
        label = f"training {work}" if work == MEMORY else f"{work} speed"
        top = 1.06 * max(1.0, *(memory["ratio"] if work == MEMORY else [*speeds["ratio"], *printed["ratio"]]))
        panels.append(Panel(tuple(marks), x, Axis(label, range=(0.0, top)), 1.2))
    slowest = speeds.iloc[int(speeds["ratio"].to_numpy().argmin())]
    most = f" The most memory is {memory['ratio'].max():.2f} times its own." if len(memory) else ""
    return Figure(
        "ablation-cost",
        "What an option costs",
        tuple(panels),
        caption,
        f"The lowest speed is {slowest['ratio']:.2f} times that of {baseline}: {slowest['work']} with {option} "
        f"{_text(slowest['value'])} ({slowest['series']}).{most}",
        "page",
        columns=len(panels),
    )


def _axis(values: Sequence[Any], option: str) -> tuple[dict[Any, float], Axis]:
    """Where each value stands, and the axis: numbers by size, by doublings where they reach far; names one by one."""
    found = list(dict.fromkeys(values))
    label = option.replace("_", " ")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return {value: float(place) for place, value in enumerate(found)}, category_axis(list(map(_text, found)), label)
    found.sort()
    far = found[0] > 0 and found[-1] / found[0] >= FAR
    places = {value: math.log2(value) if far else float(value) for value in found}
    ends = (places[found[0]], places[found[-1]])
    margin = 0.06 * (ends[1] - ends[0]) or 0.5
    positions, texts = tuple(places.values()), tuple(map(_text, found))
    return places, Axis(label, "number", positions, texts, range=(ends[0] - margin, ends[1] + margin))


def _text(value: Any) -> str:
    if isinstance(value, tuple):  # a list of losses
        return "+".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _printed(table: pd.DataFrame, places: dict[Any, float]) -> pd.DataFrame:
    placed = table.assign(place=[places[value] for value in table["value"]], setting=table["value"].map(_text))
    return placed.sort_values("place")


def _placed(table: pd.DataFrame, name: str, places: dict[Any, float], aside: float = 0.0) -> pd.DataFrame:
    rows = table[table["series"] == name]
    placed = rows.assign(place=[places[value] + aside for value in rows["value"]])
    return placed.assign(setting=placed["value"].map(_text)).sort_values("place")


def _summary(table: pd.DataFrame, option: str, metric: str, baseline: tuple[str, float] | None) -> str:
    scores = table["score"].to_numpy()
    best, last = table.iloc[int(scores.argmax())], table.iloc[int(scores.argmin())]
    text = (
        f"{metric} is highest with {option} {_text(best['value'])} ({best['series']}, {best['score']:.2f}), lowest "
        f"with {_text(last['value'])} ({last['series']}, {last['score']:.2f})"
    )
    return f"{text}; {baseline[0]} has {baseline[1]:.2f}." if baseline else f"{text}."
