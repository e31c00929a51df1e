"""Plots of PAST and FUTURE over a test set: flip times, overlap rates, comparison with the truth, under-translation.

Input are tidy tables of measures with intervals, with the columns of `analyses.past_future`, `overlap` and
`past_future_gold`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Bars, Figure, Line, Mark, Panel, Points, SeriesStyle, rule
from workbench.views.past_future.plots import GROUP_LINES

_FLIPS = ("system", "distance", "n", "share")
_ALONG = ("system", "side", "place", "value", "low", "high", "n")
_RATES = ("system", "side", "value", "low", "high", "n")
_AREAS = ("system", "words", "auc", "low", "high", "n")
_BINS = ("system", "bin", "predicted", "share", "low", "high", "n")
_LEFT = ("sentence", "left", "mean", "most", "source", "word")
_NEVER = 2.0  # places to the right of the last distance
_MEAN, _PRINTED_AT = 1.12, 1.2  # x positions of the means, right of an axis from 0 to 1
_ROW_INCHES = 0.16


def flip_times(table: pd.DataFrame, styles: dict[str, SeriesStyle] | None = None, caption: str = "") -> Figure:
    """Share of source words by the number of steps from their counterpart to their flip to PAST.

    Rows with the distance NaN are words that never flip; they are drawn at the right.
    """
    require_columns(table, _FLIPS, "table")
    systems = list(dict.fromkeys(table["system"]))
    series_styles = theme.styles(systems, styles)
    flipping = table.dropna(subset=["distance"])
    first, last = int(flipping["distance"].min()), int(flipping["distance"].max())
    marks: list[Mark] = [rule(0.0, horizontal=False)]
    for system in systems:
        rows = table[table["system"] == system]
        marks.append(Line(rows.dropna(subset=["distance"]), "distance", "share", system, series_styles[system], ("n",)))
        never = rows[rows["distance"].isna()].assign(distance=last + _NEVER)
        marks.append(
            Points(never, "distance", "share", system, replace(series_styles[system], dash="none"), ("n",), False)
        )
    positions = [*range(first, last + 1), last + _NEVER]
    texts = [f"≤ −{-first}", *(f"{index}".replace("-", "−") for index in range(first + 1, last)), f"≥ {last}", "never"]
    labeled = [index for index in range(len(positions)) if index % 2 == 0 or index == len(positions) - 1]
    x = Axis(
        "steps from the counterpart to the flip",
        positions=tuple(float(positions[index]) for index in labeled),
        texts=tuple(texts[index] for index in labeled),
        range=(first - 0.6, last + _NEVER + 0.6),
    )
    panel = Panel(tuple(marks), x, Axis("share of words"), 1.3)
    return Figure("flip-times", "When words flip to PAST", (panel,), caption, _flip_summary(table, systems), "page")


def _flip_summary(table: pd.DataFrame, systems: list[str]) -> str:
    descriptions = []
    for system in systems:
        rows = table[table["system"] == system]
        flipping, never = rows.dropna(subset=["distance"]), rows.loc[rows["distance"].isna(), "share"].sum()
        near = flipping.loc[flipping["distance"].between(0, 1), "share"].sum()
        descriptions.append(
            f"{system}: {100 * near:.0f} % of {int(rows['n'].sum())} words flip as their counterpart is written or one "
            f"step later, {100 * never:.0f} % never"
        )
    return f"{'; '.join(descriptions)}."


def past_future_course(table: pd.DataFrame, caption: str = "") -> Figure:
    """Mean mass of a source word in each group over the relative position, one panel for each system."""
    require_columns(table, _ALONG, "table")
    panels, descriptions = [], []
    systems = list(dict.fromkeys(table["system"]))
    for system in systems:
        system_rows = table[table["system"] == system]
        marks: list[Mark] = []
        changes = []
        for side in dict.fromkeys(system_rows["side"]):
            rows = system_rows[system_rows["side"] == side].sort_values("place")
            style = GROUP_LINES[side.upper()]
            marks.append(Line(rows, "place", "value", side.upper(), style, ("n",), True, "low", "high"))
            changes.append(f"{side.upper()} from {rows['value'].iloc[0]:.2f} to {rows['value'].iloc[-1]:.2f}")
        panels.append(
            Panel(tuple(marks), Axis("t / T", range=(-0.03, 1.03)), Axis("mass", range=(-0.03, 1.03)), 1.2, system)
        )
        descriptions.append(f"{system}: {', '.join(changes)}")
    summary = f"From the first tenth of a translation to the last, {'; '.join(descriptions)}."
    return _two_column_figure("past-future-course", "The course of PAST and FUTURE", panels, caption, summary)


def overlap_rates(
    along: pd.DataFrame,
    means: pd.DataFrame,
    printed: Mapping[str, float] | None = None,
    by_frequency: pd.DataFrame | None = None,
    caption: str = "",
) -> Figure:
    """Overlap rates of PAST and FUTURE over the relative position, one panel for each system, means at the right.

    printed: a paper's mean of each side ("past", "future"), drawn as hollow markers. by_frequency: means, as `means`,
    of a prediction that knows only how frequent words are, drawn as crosses.
    """
    require_columns(along, _ALONG, "along")
    require_columns(means, _RATES, "means")
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0, (_MEAN + _PRINTED_AT) / 2)
    texts = ("0", "0.25", "0.5", "0.75", "1", "mean")
    x = Axis("t / T", positions=ticks, texts=texts, range=(-0.03, _PRINTED_AT + 0.06))
    panels, descriptions = [], []
    systems = list(dict.fromkeys(along["system"]))
    for system in systems:
        marks: list[Mark] = []
        rates: list[str] = []
        frequent: list[str] = []
        for side in ("past", "future"):
            style, name = GROUP_LINES[side.upper()], side.upper()
            curve = along[(along["system"] == system) & (along["side"] == side)].sort_values("place")
            mean = means[(means["system"] == system) & (means["side"] == side)].assign(place=_MEAN)
            marks.append(Line(curve, "place", "value", name, style, ("n",), True, "low", "high"))
            marks.append(
                Points(mean, "place", "value", name, replace(style, dash="none"), ("n",), False, "low", "high")
            )
            if by_frequency is not None and system in by_frequency["system"].values:  # its training text is at hand
                known = by_frequency[(by_frequency["system"] == system) & (by_frequency["side"] == side)]
                crosses = replace(style, dash="none", marker="x", size=5.0)
                label = f"{name}, by frequency"
                frequent.append(f"{known['value'].iloc[0]:.2f} of {name}")
                marks.append(
                    Points(known.assign(place=_MEAN), "place", "value", label, crosses, ("n",), True, "low", "high")
                )
            if printed:
                printed_mean = pd.DataFrame({"place": [_PRINTED_AT], "value": [printed[side]]})
                hollow = replace(style, dash="none", hollow=True, size=5.0)
                marks.append(Points(printed_mean, "place", "value", f"{name}, reported", hollow))
            rates.append(f"{mean['value'].iloc[0]:.2f} of {name}")
        panels.append(Panel(tuple(marks), x, Axis("overlap rate", range=(-0.03, 1.03)), 1.3, system))
        alone = f" (the most frequent pieces alone: {' and '.join(frequent)})" if frequent else ""
        descriptions.append(f"{system}: {' and '.join(rates)}{alone}")
    summary = f"Mean overlap rates: {'; '.join(descriptions)}."
    return _two_column_figure("overlap", "What the bags of words foretell", panels, caption, summary)


def _two_column_figure(name: str, title: str, panels: Sequence[Panel], caption: str, summary: str) -> Figure:
    """Panels of one height, two in a row."""
    return Figure(name, title, tuple(panels), caption, summary, "page", shared_y=True, columns=min(2, len(panels)))


def against_truth(
    areas: pd.DataFrame,
    bins: pd.DataFrame,
    redundant: pd.DataFrame | None = None,
    names: Mapping[str, str] | None = None,
    styles: dict[str, SeriesStyle] | None = None,
    caption: str = "",
) -> Figure:
    """AUC for each kind of `words`, calibration of the probabilities, and REDUNDANT mass of words, with intervals.

    names: titles of the kinds of words. redundant: mass of words without and with a counterpart (columns system, kind,
    mass, low, high, n).
    """
    require_columns(areas, _AREAS, "areas")
    require_columns(bins, _BINS, "bins")
    systems = list(dict.fromkeys([*areas["system"], *bins["system"]]))
    series_styles = theme.styles(systems, styles)
    left = [
        _dots(areas[areas["words"] == words], "auc", "AUC", systems, series_styles, (names or {}).get(words, words))
        for words in dict.fromkeys(areas["words"])
    ]
    right = [_calibration(bins, series_styles)]
    if redundant is not None and len(redundant):
        require_columns(redundant, ("system", "kind", "mass", "low", "high", "n"), "redundant")
        right.append(_redundant(redundant, series_styles))
    panels = [panel for pair in zip_longest(left, right) for panel in pair if panel is not None]
    return Figure(
        "past-future-truth",
        "PAST and FUTURE against the truth",
        tuple(panels),
        caption,
        _auc_summary(areas, names or {}),
        "page",
        columns=2,
    )


def _dots(
    rows: pd.DataFrame, value: str, label: str, systems: list[str], series_styles: dict[str, SeriesStyle], title: str
) -> Panel:
    placed = rows.assign(place=rows["system"].map({name: float(position) for position, name in enumerate(systems)}))
    marks: list[Mark] = [rule(0.5, horizontal=False)]
    for system in dict.fromkeys(placed["system"]):
        system_rows, style = placed[placed["system"] == system], replace(series_styles[system], dash="none", size=5.0)
        marks.append(Points(system_rows, value, "place", system, style, ("n",), False, "low", "high", None, "x"))
    lowest = float(np.nanmin([0.5, *rows["low"]]))
    x = Axis(label, range=(lowest - 0.03, 1.02))
    return Panel(tuple(marks), x, category_axis(systems, reversed=True), max(0.9, _ROW_INCHES * len(systems)), title)


def _calibration(bins: pd.DataFrame, series_styles: dict[str, SeriesStyle]) -> Panel:
    diagonal = pd.DataFrame({"predicted": [0.0, 1.0], "share": [0.0, 1.0]})
    marks: list[Mark] = [Line(diagonal, "predicted", "share", "perfect", rule(0).style, (), False)]
    for system in dict.fromkeys(bins["system"]):
        rows = bins[bins["system"] == system].sort_values("predicted")
        marks.append(Line(rows, "predicted", "share", system, series_styles[system], ("n",), True, "low", "high"))
    bounds = (-0.03, 1.03)
    title = "calibration"
    return Panel(tuple(marks), Axis("PAST, as the system has it", range=bounds), Axis("PAST, true share", range=bounds),
                 1.3, title)  # fmt: skip


def _redundant(redundant: pd.DataFrame, series_styles: dict[str, SeriesStyle]) -> Panel:
    systems = list(dict.fromkeys(redundant["system"]))
    marks: list[Mark] = []
    for index, system in enumerate(systems):
        rows = redundant[redundant["system"] == system]
        shift = 0.12 * (index - (len(systems) - 1) / 2)
        points = rows.assign(place=rows["kind"].map({"without": 0.0, "with": 1.0}) + shift)
        style = replace(series_styles[system], dash="none", size=5.0)
        marks.append(Points(points, "place", "mass", system, style, ("n",), False, "low", "high"))
    top = max(0.1, 1.1 * float(redundant["high"].max()))
    x = category_axis(["no counterpart", "a counterpart"])
    return Panel(tuple(marks), x, Axis("REDUNDANT mass", range=(0.0, top)), 1.3, "words with")


def _auc_summary(areas: pd.DataFrame, names: Mapping[str, str]) -> str:
    descriptions = []
    for words in dict.fromkeys(areas["words"]):
        rows = areas[areas["words"] == words].dropna(subset=["auc"])
        if len(rows):
            ordered = rows.sort_values("auc", ascending=False, kind="stable")
            ranking = ", ".join(f"{row.system} {row.auc:.3f}" for row in ordered.itertuples())
            descriptions.append(f"{names.get(words, words)}: {ranking}")
    return f"AUC, {'; '.join(descriptions)}." if descriptions else "No cell is known."


def under_translation(table: pd.DataFrame, by: str = "left", caption: str = "") -> Figure:
    """Bars of the remaining FUTURE mass of sentences, in the order of the table.

    by: "left" (all words of a sentence together), "mean" (of its words), or "most" (its word with most mass).
    """
    require_columns(table, _LEFT, "table")
    rows = table.reset_index(drop=True).assign(place=range(len(table)))
    labels = [f"{sentence}  {source}" for sentence, source in zip(rows["sentence"], rows["source"], strict=True)]
    labels = [label if len(label) <= 46 else f"{label[:45]}…" for label in labels]
    style = SeriesStyle(theme.FUTURE, "solid", "square")
    bars = Bars(rows, by, "place", "FUTURE left", style, ("word", "left", "most"), False, None, 0.7, True)
    axis = {
        "mean": "Remaining FUTURE mass, mean per word",
        "left": "Remaining FUTURE mass, all words",
        "most": "Remaining FUTURE mass, max. per word",
    }
    first = rows.iloc[0]
    return Figure(
        "under-translation",
        "Where FUTURE is left at the end",
        (Panel((bars,), Axis(axis[by]), category_axis(labels, reversed=True), max(0.7, _ROW_INCHES * len(rows))),),
        caption,
        f"Sentence {first['sentence']} has most: {first['left']:.2f}, the sum of FUTURE mass over its source words, "
        f"{first['mean']:.2f} a word on average; {first['word']!r} has {first['most']:.2f}.",
        "page",
    )
