"""PAST and FUTURE over a test set: when words flip, what bags foretell, the truth beside it, what is left untranslated.

Measures come as tidy tables with intervals, named as in `analyses.past_future`, `overlap` and `past_future_gold`;
nothing is averaged here.
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
_BINS = ("system", "bin", "said", "share", "low", "high", "n")
_LEFT = ("sentence", "left", "mean", "most", "source", "word")
_NEVER = 2.0  # places to the right of the last distance
_MEAN, _PRINTED_AT = 1.12, 1.2  # where means stand beside what runs from 0 to 1
_ROW_INCHES = 0.16


def flip_times(table: pd.DataFrame, styles: dict[str, SeriesStyle] | None = None, caption: str = "") -> Figure:
    """How many steps after its counterpart a source word flips to PAST for good: the share of words by the distance.

    Rows whose distance is NaN are words that never do; they stand at the right.
    """
    require_columns(table, _FLIPS, "table")
    systems = list(dict.fromkeys(table["system"]))
    chosen = theme.styles(systems, styles)
    known = table.dropna(subset=["distance"])
    first, last = int(known["distance"].min()), int(known["distance"].max())
    marks: list[Mark] = [rule(0.0, horizontal=False)]
    for system in systems:
        own = table[table["system"] == system]
        marks.append(Line(own.dropna(subset=["distance"]), "distance", "share", system, chosen[system], ("n",)))
        never = own[own["distance"].isna()].assign(distance=last + _NEVER)
        marks.append(Points(never, "distance", "share", system, replace(chosen[system], dash="none"), ("n",), False))
    places = [*range(first, last + 1), last + _NEVER]
    texts = [f"≤ −{-first}", *(f"{place}".replace("-", "−") for place in range(first + 1, last)), f"≥ {last}", "never"]
    every = [place for place in range(len(places)) if place % 2 == 0 or place == len(places) - 1]
    x = Axis(
        "steps from the counterpart to the flip",
        positions=tuple(float(places[place]) for place in every),
        texts=tuple(texts[place] for place in every),
        range=(first - 0.6, last + _NEVER + 0.6),
    )
    panel = Panel(tuple(marks), x, Axis("share of words"), 1.3)
    return Figure("flip-times", "When words flip to PAST", (panel,), caption, _flipped(table, systems), "page")


def _flipped(table: pd.DataFrame, systems: list[str]) -> str:
    said = []
    for system in systems:
        own = table[table["system"] == system]
        known, never = own.dropna(subset=["distance"]), own.loc[own["distance"].isna(), "share"].sum()
        near = known.loc[known["distance"].between(0, 1), "share"].sum()
        said.append(
            f"{system}: {100 * near:.0f} % of {int(own['n'].sum())} words flip as their counterpart is written or one "
            f"step later, {100 * never:.0f} % never"
        )
    return f"{'; '.join(said)}."


def past_future_course(table: pd.DataFrame, caption: str = "") -> Figure:
    """Mean mass of a source word in each group over the relative position, a panel a system."""
    require_columns(table, _ALONG, "table")
    panels, said = [], []
    systems = list(dict.fromkeys(table["system"]))
    for system in systems:
        own = table[table["system"] == system]
        marks: list[Mark] = []
        told = []
        for side in dict.fromkeys(own["side"]):
            rows = own[own["side"] == side].sort_values("place")
            look = GROUP_LINES[side.upper()]
            marks.append(Line(rows, "place", "value", side.upper(), look, ("n",), True, "low", "high"))
            told.append(f"{side.upper()} from {rows['value'].iloc[0]:.2f} to {rows['value'].iloc[-1]:.2f}")
        panels.append(
            Panel(tuple(marks), Axis("t / T", range=(-0.03, 1.03)), Axis("mass", range=(-0.03, 1.03)), 1.2, system)
        )
        said.append(f"{system}: {', '.join(told)}")
    summary = f"From the first tenth of a translation to the last, {'; '.join(said)}."
    return _in_pairs("past-future-course", "The course of PAST and FUTURE", panels, caption, summary)


def overlap_rates(
    along: pd.DataFrame, means: pd.DataFrame, printed: Mapping[str, float] | None = None, caption: str = ""
) -> Figure:
    """Overlap rates of PAST and FUTURE over the relative position, a panel a system, means at the right with intervals.

    printed: what a paper says of the mean, by the side ("past", "future"), hollow.
    """
    require_columns(along, _ALONG, "along")
    require_columns(means, _RATES, "means")
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0, (_MEAN + _PRINTED_AT) / 2)
    texts = ("0", "0.25", "0.5", "0.75", "1", "mean")
    x = Axis("t / T", positions=ticks, texts=texts, range=(-0.03, _PRINTED_AT + 0.06))
    panels, said = [], []
    systems = list(dict.fromkeys(along["system"]))
    for system in systems:
        marks: list[Mark] = []
        told = []
        for side in ("past", "future"):
            look, name = GROUP_LINES[side.upper()], side.upper()
            own = along[(along["system"] == system) & (along["side"] == side)].sort_values("place")
            mean = means[(means["system"] == system) & (means["side"] == side)].assign(place=_MEAN)
            marks.append(Line(own, "place", "value", name, look, ("n",), True, "low", "high"))
            marks.append(Points(mean, "place", "value", name, replace(look, dash="none"), ("n",), False, "low", "high"))
            if printed:
                theirs = pd.DataFrame({"place": [_PRINTED_AT], "value": [printed[side]]})
                hollow = replace(look, dash="none", hollow=True, size=5.0)
                marks.append(Points(theirs, "place", "value", f"{name}, printed", hollow))
            told.append(f"{mean['value'].iloc[0]:.2f} of {name}")
        panels.append(Panel(tuple(marks), x, Axis("overlap rate", range=(-0.03, 1.03)), 1.3, system))
        said.append(f"{system}: {' and '.join(told)}")
    summary = f"Mean overlap rates: {'; '.join(said)}."
    return _in_pairs("overlap", "What the bags of words foretell", panels, caption, summary)


def _in_pairs(name: str, title: str, panels: Sequence[Panel], caption: str, summary: str) -> Figure:
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
    """Areas under the curve with intervals, for each kind of `words` (called as in `names`); calibration of what is a
    probability; REDUNDANT mass of words without and with a counterpart (columns system, kind, mass, low, high, n)."""
    require_columns(areas, _AREAS, "areas")
    require_columns(bins, _BINS, "bins")
    systems = list(dict.fromkeys([*areas["system"], *bins["system"]]))
    chosen = theme.styles(systems, styles)
    dots = [
        _dots(areas[areas["words"] == words], "auc", "AUC", systems, chosen, (names or {}).get(words, words))
        for words in dict.fromkeys(areas["words"])
    ]
    beside = [_calibration(bins, chosen)]
    if redundant is not None and len(redundant):
        require_columns(redundant, ("system", "kind", "mass", "low", "high", "n"), "redundant")
        beside.append(_redundant(redundant, chosen))
    panels = [panel for pair in zip_longest(dots, beside) for panel in pair if panel is not None]
    return Figure(
        "past-future-truth",
        "PAST and FUTURE against the truth",
        tuple(panels),
        caption,
        _best(areas, names or {}),
        "page",
        columns=2,
    )


def _dots(
    rows: pd.DataFrame, value: str, label: str, systems: list[str], chosen: dict[str, SeriesStyle], title: str
) -> Panel:
    placed = rows.assign(place=rows["system"].map({name: float(at) for at, name in enumerate(systems)}))
    marks: list[Mark] = [rule(0.5, horizontal=False)]
    for system in dict.fromkeys(placed["system"]):
        own, look = placed[placed["system"] == system], replace(chosen[system], dash="none", size=5.0)
        marks.append(Points(own, value, "place", system, look, ("n",), False, "low", "high", None, "x"))
    lowest = float(np.nanmin([0.5, *rows["low"]]))
    x = Axis(label, range=(lowest - 0.03, 1.02))
    return Panel(tuple(marks), x, category_axis(systems, reversed=True), max(0.9, _ROW_INCHES * len(systems)), title)


def _calibration(bins: pd.DataFrame, chosen: dict[str, SeriesStyle]) -> Panel:
    ends = pd.DataFrame({"said": [0.0, 1.0], "share": [0.0, 1.0]})
    marks: list[Mark] = [Line(ends, "said", "share", "perfect", rule(0).style, (), False)]
    for system in dict.fromkeys(bins["system"]):
        own = bins[bins["system"] == system].sort_values("said")
        marks.append(Line(own, "said", "share", system, chosen[system], ("n",), True, "low", "high"))
    bounds = (-0.03, 1.03)
    title = "calibration"
    return Panel(tuple(marks), Axis("PAST, as the system has it", range=bounds), Axis("PAST, true share", range=bounds),
                 1.3, title)  # fmt: skip


def _redundant(redundant: pd.DataFrame, chosen: dict[str, SeriesStyle]) -> Panel:
    systems = list(dict.fromkeys(redundant["system"]))
    marks: list[Mark] = []
    for place, system in enumerate(systems):
        own = redundant[redundant["system"] == system]
        shift = 0.12 * (place - (len(systems) - 1) / 2)
        at = own.assign(place=own["kind"].map({"without": 0.0, "with": 1.0}) + shift)
        look = replace(chosen[system], dash="none", size=5.0)
        marks.append(Points(at, "place", "mass", system, look, ("n",), False, "low", "high"))
    top = max(0.1, 1.1 * float(redundant["high"].max()))
    x = category_axis(["no counterpart", "a counterpart"])
    return Panel(tuple(marks), x, Axis("REDUNDANT mass", range=(0.0, top)), 1.3, "words with")


def _best(areas: pd.DataFrame, names: Mapping[str, str]) -> str:
    said = []
    for words in dict.fromkeys(areas["words"]):
        rows = areas[areas["words"] == words].dropna(subset=["auc"])
        if len(rows):
            ordered = rows.sort_values("auc", ascending=False, kind="stable")
            told = ", ".join(f"{row.system} {row.auc:.3f}" for row in ordered.itertuples())
            said.append(f"{names.get(words, words)}: {told}")
    return f"AUC, {'; '.join(said)}." if said else "No cell is known."


def under_translation(table: pd.DataFrame, by: str = "left", caption: str = "") -> Figure:
    """The sentences with most FUTURE mass left at the end, a bar each, the most first; shown as they come.

    by: "left" of all words of a sentence, their "mean", or "most" of one.
    """
    require_columns(table, _LEFT, "table")
    rows = table.reset_index(drop=True).assign(place=range(len(table)))
    labels = [f"{sentence}  {source}" for sentence, source in zip(rows["sentence"], rows["source"], strict=True)]
    labels = [label if len(label) <= 46 else f"{label[:45]}…" for label in labels]
    look = SeriesStyle(theme.FUTURE, "solid", "square")
    bars = Bars(rows, by, "place", "FUTURE left", look, ("word", "left", "most"), False, None, 0.7, True)
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
        f"Sentence {first['sentence']} has most: {first['left']:.2f} of all source words, {first['mean']:.2f} of each; "
        f"of {first['word']!r} {first['most']:.2f}.",
        "page",
    )
