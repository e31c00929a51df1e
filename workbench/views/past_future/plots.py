"""Plots of PAST and FUTURE in one sentence (Zheng 2019, Figure 4): maps, life lines of words, strips at single steps.

Input are tidy tables of mass, one row per cell, with step and word counted from 0. Plots over a test set are in
`corpus_plots`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, token_axis, token_text, token_texts
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import (
    Axis,
    Bars,
    Figure,
    Heat,
    Labels,
    Mark,
    Outlines,
    Panel,
    Points,
    SeriesStyle,
    rule,
)
from workbench.views.attention.plots import LINKS

_CELLS = ("system", "group", "step", "word", "step_token", "word_token", "value")
_LINKS = ("system", "step", "word", "kind")
_LIVES = ("word", "word_token", "step", "step_token", "group", "base", "top", "value")
_ROW_INCHES, _STRIP_INCHES = 0.14, 0.16
_LOWEST, _HIGHEST = 0.7, 7.0
_LABELS_ACROSS = 60  # most token labels in a row of maps
SIGNED = "PAST − FUTURE"
_JUDGED = ("PAST", "FUTURE", SIGNED)
GROUP_STYLES = {
    "PAST": SeriesStyle(theme.PAST, "solid", "square"),
    "FUTURE": SeriesStyle(theme.FUTURE, "dashdot", "triangle-up"),
    "REDUNDANT": SeriesStyle(theme.REDUNDANT, "dot", "diamond"),
}
GROUP_LINES = {**GROUP_STYLES, "REDUNDANT": SeriesStyle(theme.NEUTRAL, "dot", "diamond")}  # thin, so it must be darker
_AT = SeriesStyle("#D55E00", "solid", "none", width=1.2)  # the step that is looked at, on light cells and on dark ones
_FLIP = SeriesStyle(theme.BLACK, "dash", "none", width=0.9)
_WRITTEN = SeriesStyle(theme.BLACK, "none", "triangle-down", size=5.0)
_MISJUDGED = SeriesStyle("#D6249F", "solid", "none", width=1.3)  # on light cells and on dark ones
MISJUDGED = "misjudged"
WRITTEN, FLIPS = "counterpart written", "flips to PAST for good"


def past_future_maps(
    cells: pd.DataFrame,
    links: pd.DataFrame | None = None,
    step: int | None = None,
    caption: str = "",
    misjudged: pd.DataFrame | None = None,
) -> Figure:
    """Maps of source words (downwards) by target words, one for each group and system, one row for each system.

    value: mass of a word in the group when the target word is predicted, shaded from 0 to 1; of the group SIGNED from
    -1 to 1. links: cells to be marked, of a `kind` in `attention.LINKS`. step: looked at, a line in all maps.
    misjudged: cells to be outlined in the maps of PAST, FUTURE and SIGNED (system, step, word).
    """
    require_columns(cells, _CELLS, "cells")
    systems, groups = list(dict.fromkeys(cells["system"])), list(dict.fromkeys(cells["group"]))
    capsules = [group for group in groups if group.startswith("PAST ") and group != SIGNED]  # a row of maps a group
    across = len(capsules) or len(groups)
    panels = []
    for system in systems:
        rows = cells[cells["system"] == system]
        sources, targets = _tokens(rows, "word"), _tokens(rows, "step")
        x = token_axis(targets, "target", side="target")
        y = token_axis(sources, "source", reversed=True, side="source")
        x = replace(x, every=max(x.every, math.ceil(len(targets) * across / _LABELS_ACROSS)))
        for group in groups:
            marks: list[Mark] = [_heat(rows[rows["group"] == group], "step", "word", group == SIGNED)]
            if group in _JUDGED:
                marks += _outlines(misjudged, system, "step", "word")
            marks += _link_marks(links, system, "step", "word")
            marks += (
                [rule(float(step), horizontal=False, style=_AT)] if step is not None and step < len(targets) else []
            )
            title = group + (f": {system}" if len(systems) > 1 else "")
            panels.append(Panel(tuple(marks), x, y, _height(len(sources)), title))
    return Figure(
        "past-future",
        "PAST, FUTURE and REDUNDANT mass",
        tuple(panels),
        caption,
        said_of_each(cells, _mass_summary),
        "page",
        shared_y=len(systems) == 1,
        columns=across,
    )


def _heat(rows: pd.DataFrame, x: str, y: str, signed: bool = False) -> Heat:
    limits = (-1.0, 1.0) if signed else (0.0, 1.0)
    hover = ("word_token", "step_token")
    return Heat(rows, x, y, hover=hover, value="value", role="signed" if signed else "probability", limits=limits,
                label="mass")  # fmt: skip


def _link_marks(links: pd.DataFrame | None, system: str, x: str, y: str) -> list[Mark]:
    if links is None:
        return []
    system_links = links[links["system"] == system]
    return [
        Points(system_links[system_links["kind"] == kind], x, y, series, style)
        for kind, (series, style) in LINKS.items()
        if (system_links["kind"] == kind).any()
    ]


def _outlines(
    misjudged: pd.DataFrame | None, system: str, x: str, y: str, across: float = 1.0, down: float = 1.0
) -> list[Mark]:
    """Outlines around the misjudged cells of a system, none if it has none."""
    if misjudged is None:
        return []
    rows = misjudged[misjudged["system"] == system]
    return (
        [Outlines(rows, x, y, MISJUDGED, _MISJUDGED, ("word", "step"), across=across, down=down)] if len(rows) else []
    )


def _tokens(cells: pd.DataFrame, side: str) -> list[str]:
    rows = cells.drop_duplicates(side).sort_values(side)
    return [str(token) for token in rows[f"{side}_token"]]


def _height(rows: int) -> float:
    return min(_HIGHEST, max(_LOWEST, _ROW_INCHES * rows))


def _mass_summary(system: str, cells: pd.DataFrame) -> str:
    """Summary: mean mass of the groups at the first and at the last step."""
    groups = [group for group in dict.fromkeys(cells["group"]) if group != SIGNED]
    means = cells.groupby(["group", "step"])["value"].mean()
    last = int(cells["step"].max())
    changes = [
        f"{group} {'grows' if means[group, last] > means[group, 0] else 'shrinks'} from {means[group, 0]:.2f} to "
        f"{means[group, last]:.2f}"
        for group in groups
    ]
    return f"{system}: of a source word's mass, on average, {', '.join(changes)} over the sentence."


def past_future_strip(
    cells: pd.DataFrame,
    links: pd.DataFrame | None = None,
    step: int | None = None,
    caption: str = "",
    misjudged: pd.DataFrame | None = None,
) -> Figure:
    """Strips of the groups at single steps.

    With `step`: that step, source words to the right, one strip for each system. Else: for each step of the first
    system a column of PAST and a column of FUTURE, as in Figure 4 of Zheng 2019. misjudged: (system, step, word), to be
    outlined over both groups.
    """
    require_columns(cells, _CELLS, "cells")
    shown = cells if step is None else cells[cells["step"] == step]
    return Figure(
        "past-future-strip",
        "PAST and FUTURE at single steps",
        tuple(_strips(shown, misjudged) if step is not None else [_pairs(cells, links, misjudged)]),
        caption,
        _strip_summary(shown),
        "page",
    )


def _strips(cells: pd.DataFrame, misjudged: pd.DataFrame | None) -> list[Panel]:
    panels = []
    if misjudged is not None:
        shown_steps = misjudged["step"].isin(cells["step"])
        misjudged = misjudged[shown_steps].assign(place=0.5)  # between PAST and FUTURE, the first two groups
    systems = list(dict.fromkeys(cells["system"]))
    for system in systems:
        system_cells = cells[cells["system"] == system]
        names = list(dict.fromkeys(system_cells["group"]))
        rows = system_cells.assign(
            place=system_cells["group"].map({name: position for position, name in enumerate(names)})
        )
        x, y = token_axis(_tokens(system_cells, "word"), "source", side="source"), category_axis(names, reversed=True)
        marks = [_heat(rows, "word", "place"), *_outlines(misjudged, system, "word", "place", down=2.0)]
        panels.append(Panel(tuple(marks), x, y, _STRIP_INCHES * len(names), system if len(systems) > 1 else ""))
    return panels


def _pairs(cells: pd.DataFrame, links: pd.DataFrame | None, misjudged: pd.DataFrame | None) -> Panel:
    """Pairs of columns (PAST, FUTURE), separated by an empty column."""
    system = cells["system"].iloc[0]
    system_cells = cells[(cells["system"] == system) & cells["group"].isin(["PAST", "FUTURE"])]
    steps = sorted(set(system_cells["step"]))
    pairs = {step: 3 * number for number, step in enumerate(steps)}
    system_cells = system_cells.assign(place=system_cells["step"].map(pairs) + (system_cells["group"] == "FUTURE"))
    y = token_axis(_tokens(system_cells, "word"), "source", reversed=True, side="source")
    marks: list[Mark] = [_heat(system_cells, "place", "word")]
    if misjudged is not None:
        shown_cells = misjudged[misjudged["step"].isin(steps)]
        middle = shown_cells["step"].map(pairs) + 0.5
        marks += _outlines(shown_cells.assign(place=middle), system, "place", "word", across=2.0)
    if links is not None:
        shown_links = links[links["step"].isin(steps)]
        both = pd.concat(
            [shown_links.assign(place=shown_links["step"].map(pairs) + side) for side in (0, 1)], ignore_index=True
        )
        marks += _link_marks(both, system, "place", "word")
    marks += [rule(position - 1.0, horizontal=False) for position in list(pairs.values())[1:]]
    letters = system_cells.drop_duplicates("place").assign(
        text=lambda rows: rows["group"].str[0], height=float(len(y.texts)) - 0.1
    )
    marks.append(Labels(letters, "place", "height", font_points=6.0, offset_points=0.0))
    tokens = system_cells.drop_duplicates("step").set_index("step")["step_token"]
    middles = tuple(position + 0.5 for position in pairs.values())
    texts = dict(zip(tokens.index, token_texts(tokens.astype(str)), strict=True))
    x = Axis("target", "tokens", middles, tuple(texts[step] for step in steps), 1, (-0.7, 3 * len(steps) - 1.3))
    y = replace(y, range=(-0.5, len(y.texts) + 0.4))
    return Panel(tuple(marks), x, y, _height(len(y.texts) + 1))


def _strip_summary(cells: pd.DataFrame) -> str:
    """Summary: the number of source words with more PAST than FUTURE mass at each step."""
    system_cells = cells[cells["system"] == cells["system"].iloc[0]]
    wide = system_cells.pivot_table(index=["step", "word"], columns="group", values="value")
    past = (wide["PAST"] > wide["FUTURE"]).groupby("step").sum()
    tokens = system_cells.drop_duplicates("step").set_index("step")["step_token"]
    words = system_cells["word"].nunique()
    ends = [f"{past.iloc[end]} at {token_text(tokens[past.index[end]])!r}" for end in (0, -1)]
    found = f"{ends[0]} and {ends[1]}" if len(past) > 1 else ends[0]
    return f"{system_cells['system'].iloc[0]} holds of {words} source words more for PAST than for FUTURE: {found}."


def past_future_lives(
    lives: pd.DataFrame, written: pd.DataFrame, flips: pd.DataFrame, step: int | None = None, caption: str = ""
) -> Figure:
    """Stacked PAST, FUTURE and REDUNDANT mass at each step, one panel for each chosen source word.

    lives: a bar of `group` from base to top. written: word and step of its counterparts; flips: word and flip (the
    step, from 0, from which PAST stays above FUTURE). step: looked at.
    """
    require_columns(lives, _LIVES, "lives")
    require_columns(written, ("word", "step"), "written")
    require_columns(flips, ("word", "flip"), "flips")
    tokens = _tokens(lives, "step")
    x = token_axis(tokens, "target", side="target")
    words = lives.drop_duplicates("word")
    columns = 2 if len(words) > 1 else 1
    x = replace(x, every=max(x.every, math.ceil(len(tokens) * columns / _LABELS_ACROSS)))
    panels = []
    for word, token in zip(words["word"], words["word_token"], strict=True):
        rows = lives[lives["word"] == word]
        marks: list[Mark] = [
            Bars(rows[rows["group"] == group], "step", "top", group, style, ("value", "step_token"), base="base",
                 width=1.0)
            for group, style in GROUP_STYLES.items()
            if (rows["group"] == group).any()
        ]  # fmt: skip
        counterparts = written[written["word"] == word].assign(height=1.09)
        marks += [Points(counterparts, "step", "height", WRITTEN, _WRITTEN)] if len(counterparts) else []
        marks += [
            rule(float(flip) - 0.5, horizontal=False, series=FLIPS, style=_FLIP)
            for flip in flips.loc[flips["word"] == word, "flip"].dropna()
        ]
        marks += [rule(float(step), horizontal=False, style=_AT)] if step is not None and step < len(tokens) else []
        panels.append(Panel(tuple(marks), x, Axis("mass", range=(0.0, 1.18)), 0.6, f"{word} {token_text(token)}"))
    return Figure(
        "past-future-lines",
        "Life lines of source words",
        tuple(panels),
        caption,
        _flip_summary(words, flips, tokens),
        "page",
        shared_x=True,
        shared_y=columns > 1,
        columns=columns,
    )


def _flip_summary(words: pd.DataFrame, flips: pd.DataFrame, tokens: Sequence[str]) -> str:
    flip_steps = flips.set_index("word")["flip"]
    descriptions = []
    for word, token in zip(words["word"], words["word_token"], strict=True):
        flip = flip_steps.get(word)
        when = "never" if flip is None or pd.isna(flip) else f"when {token_text(tokens[int(flip)])!r} is predicted"
        descriptions.append(f"{token_text(token)!r} {when}")
    return f"Words flip to PAST for good: {', '.join(descriptions)}."
