"""Plots of context capsules (Yang 2019, Figures 6 and 7): maps of context words by capsules, curves over iterations.

Input are tidy tables with words in reading order, the farthest sentence first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd

from analyses.documents import how_far
from workbench.plotting import theme
from workbench.plotting.axes import category_axis, token_axis, token_text
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import Axis, Figure, Heat, Labels, Line, Mark, Panel, Rule, SeriesStyle, rule
from workbench.plotting.scale_end import AUTO, scale_end

_CELLS = ("system", "row", "iteration", "capsule", "word", "word_token", "distance", "value", "shown")
_CURVES = ("system", "measure", "iteration", "value", "low", "high")
_READ = ("system", "capsule", "word", "word_token", "share", "even")
_ROW_INCHES, _LEAST = 0.13, 0.45
_LEAST_END = 0.01  # of a scale of shares
COUPLING, CORRELATION, WEIGHT = "coupling c", "correlation p", "c + p"
LITERAL = "p by Equation 7 as published"
TRUE = "p by Pearson's correlation"
SUM_LIMIT = 1.8  # c is at most 1, p at most tanh 1 = 0.76
LABELS = {
    "effective": "capsules of a word",
    "used": "capsules in use",
    "fullest_share": "share of the fullest",
    "negative": "weights below 0",
    "query_cosine": "cosine with q",
    "coupling": "largest c of a word",
    "correlation": "mean p",
    "weight": "mean |c + p|",
}


def context_routing(cells: pd.DataFrame, caption: str = "") -> Figure:
    """Maps of capsules (downwards) by context words, one for each iteration and `row`, below each other.

    value: as it is; shown: as it is shaded, couplings as ratios to an even share, all else from -1 to 1 (c + p to
    `SUM_LIMIT`). Lines part the context sentences, which are named above the first map of a system. The maps of a
    system have the same words and zoom together.
    """
    require_columns(cells, _CELLS, "cells")
    systems = list(dict.fromkeys(cells["system"]))
    panels: list[Panel] = []
    with_names: set[object] = set()
    for (system, iteration, row), rows in cells.groupby(["system", "iteration", "row"], sort=False):
        words = rows.drop_duplicates("word").sort_values("word")
        capsules = sorted(set(rows["capsule"]))
        placed = rows.assign(place=rows["capsule"] - capsules[0])
        marks: list[Mark] = [_heat(placed, str(row), len(capsules)), *between_sentences(words)]
        first = system not in with_names
        top = len(capsules) - 0.5
        if first:
            with_names.add(system)
            marks.append(sentence_names(words, "word", len(capsules)))
            top = len(capsules) + 0.6
        axis = token_axis([str(token) for token in words["word_token"]], "context word")
        y = category_axis([str(capsule) for capsule in capsules], "capsule")
        y = Axis(y.label, y.kind, y.positions, y.texts, 1, (-0.5, top))
        title = f"iteration {iteration}, {row}"
        height = max(_LEAST, _ROW_INCHES * (len(capsules) + first))
        title = f"{system}: {title}" if len(systems) > 1 else title
        panels.append(Panel(tuple(marks), axis, y, height, title, linked=str(system)))
    return Figure(
        "context-routing",
        "Context words and capsules",
        tuple(panels),
        caption,
        said_of_each(cells, _fullest_capsule),
        "page",
        shared_x=len(systems) == 1,
    )


def _heat(rows: pd.DataFrame, row: str, capsules: int) -> Heat:
    hover = ("word_token", "distance", "capsule", "value")
    if row == COUPLING:
        even = (1 / capsules, float(capsules)) if capsules > 1 else (0.5, 2.0)
        return Heat(rows, "word", "place", hover=hover, value="shown", role="relative", limits=even, label="c × m")
    limit, label = (SUM_LIMIT, WEIGHT) if row == WEIGHT else (1.0, "p")
    return Heat(rows, "word", "place", hover=hover, value="shown", role="signed", limits=(-limit, limit), label=label)


def between_sentences(words: pd.DataFrame) -> list[Rule]:
    """Lines between context sentences, from the `distance` of each word in reading order."""
    distances = words["distance"].tolist()
    return [
        rule(position - 0.5, horizontal=False, style=SeriesStyle(theme.BLACK, "solid", "none", width=0.9))
        for position in range(1, len(distances))
        if distances[position] != distances[position - 1]
    ]


def sentence_names(words: pd.DataFrame, place: str, height: float) -> Labels:
    """Labels with the distance of each context sentence, above the middle of its words (column `place`)."""
    middles = words.groupby("distance", sort=False)[place].mean().reset_index()
    named = middles.assign(text=[how_far(int(distance)) for distance in middles["distance"]], height=float(height))
    return Labels(named, place, "height", font_points=6.0, offset_points=0.0)


def _fullest_capsule(system: str, cells: pd.DataFrame) -> str:
    """Summary: the capsule with which most words have their largest value, in the last map of the first row."""
    row = cells["row"].iloc[0]
    rows = cells[(cells["row"] == row) & (cells["iteration"] == cells["iteration"].max())]
    best = rows.loc[rows.groupby("word")["value"].idxmax(), "capsule"]
    capsule = int(best.mode().iloc[0])
    return (
        f"{system}: in iteration {rows['iteration'].iloc[0]}, {int((best == capsule).sum())} of {len(best)} context "
        f"words have their largest {row} with capsule {capsule}."
    )


def capsules_read(cells: pd.DataFrame, limit: float | Literal["auto"] = AUTO, caption: str = "") -> Figure:
    """Maps of capsules (downwards) by source words, shaded by the share of a capsule minus an `even` one.

    limit: the difference with the last color, the same for all systems (see `scale_end`); it is at least `_LEAST_END`
    where it is found, so that noise has no color.
    """
    require_columns(cells, _READ, "cells")
    cells = cells.assign(difference=cells["share"] - cells["even"])
    maxima = cells["difference"].abs().groupby([cells["system"], cells["word"]]).max().to_numpy()
    end, end_text = scale_end(maxima, limit, differences=True)
    if end < _LEAST_END:
        end, end_text = scale_end(maxima, _LEAST_END, differences=True)
    systems, panels = list(dict.fromkeys(cells["system"])), []
    for system in systems:
        rows = cells[cells["system"] == system].assign(place=lambda table: table["capsule"] - 1)
        words = rows.drop_duplicates("word").sort_values("word")["word_token"]
        heat = Heat(
            rows, "word", "place", hover=("word_token", "capsule", "share"), value="difference", role="signed",
            limits=(-end, end), label="Δ share",
        )  # fmt: skip
        capsules = category_axis([str(capsule) for capsule in sorted(set(rows["capsule"]))], "capsule", reversed=True)
        x = token_axis([str(word) for word in words], "source", side="source")
        height = max(_LEAST, _ROW_INCHES * len(capsules.texts))
        panels.append(Panel((heat,), x, capsules, height, system if len(systems) > 1 else ""))
    summary = said_of_each(cells, _shares_read)
    return Figure(
        "context-capsules-read", "Who reads which capsule", tuple(panels), f"{caption} {end_text}", summary, "page"
    )


def _shares_read(system: str, cells: pd.DataFrame) -> str:
    """Summary: the capsule that is read most, and the word that reads it most."""
    means = cells.groupby("capsule")["share"].mean()
    favorite = cells[cells["capsule"] == means.idxmax()]
    most = favorite.iloc[int(favorite["share"].to_numpy().argmax())]
    return (
        f"{system} reads capsule {most['capsule']} most: {means.max():.2f} of the attention on average, most at "
        f"{token_text(str(most['word_token']))!r} ({most['share']:.2f}); an even share is {most['even']:.2f}."
    )


def context_curves(
    table: pd.DataFrame,
    measures: Sequence[str],
    ceilings: Mapping[str, float] | None = None,
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
    name: str = "context-curves",
) -> Figure:
    """Measures by iteration from 0, one panel for each; `low` and `high` bound the band (NaN: none).

    ceilings: horizontal rule of a measure's panel.
    """
    require_columns(table, _CURVES, "table")
    series_styles = theme.styles(list(dict.fromkeys(table["system"])), styles)
    panels, x = [], _iterations(table)
    for measure in measures:
        measure_rows = table[table["measure"] == measure]
        if measure_rows.empty:
            continue
        ceiling = (ceilings or {}).get(measure)
        marks: list[Mark] = [] if ceiling is None else [rule(ceiling)]
        for system, rows in measure_rows.groupby("system", sort=False):
            banded = bool(rows["low"].notna().all())
            marks.append(
                Line(rows, "iteration", "value", str(system), series_styles[str(system)],
                     low="low" if banded else None, high="high" if banded else None)
            )  # fmt: skip
        y = Axis(LABELS.get(measure, measure), range=_range(measure, ceiling, measure_rows))
        panels.append(Panel(tuple(marks), x, y, 1.1))
    return Figure(
        name, "Routing of the context by iteration", tuple(panels), caption, _final_values(table, measures), "page",
        columns=len(panels) if len(panels) <= 4 else math.ceil(len(panels) / 2),
    )  # fmt: skip


def _iterations(table: pd.DataFrame) -> Axis:
    steps = sorted(set(table["iteration"]))
    return Axis("iteration", positions=tuple(map(float, steps)), texts=tuple(map(str, steps)))


def _last_iteration(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of each system's last iteration; systems may have different numbers of iterations."""
    return table[table["iteration"] == table.groupby("system")["iteration"].transform("max")]


def _range(measure: str, ceiling: float | None, rows: pd.DataFrame) -> tuple[float, float] | None:
    """Axis range of a measure: its full range of values, so that small changes look small; None for a cosine."""
    if measure in ("fullest_share", "negative"):
        return -0.03, 1.03
    if measure in ("effective", "used"):
        top = float(rows[["value", "high"]].max().max()) if ceiling is None else ceiling
        return 1 - 0.05 * top, 1.05 * top
    return None


def _final_values(table: pd.DataFrame, measures: Sequence[str]) -> str:
    descriptions = []
    for system, rows in _last_iteration(table).groupby("system", sort=False):
        values = rows.drop_duplicates("measure").set_index("measure")["value"]
        listed = [f"{LABELS.get(name, name)} ({values[name]:.2f})" for name in measures if name in values]
        descriptions.append(f"{system} in iteration {rows['iteration'].iloc[0]}: {', '.join(listed)}")
    return f"At the end, {'; '.join(descriptions)}."


def context_distances(
    table: pd.DataFrame, measures: Sequence[str], caption: str = "", name: str = "context-distances"
) -> Figure:
    """Measures by iteration, one panel for each measure and system, one line with a band for each distance."""
    require_columns(table, (*_CURVES, "distance"), "table")
    series = {distance: f"{distance} before" for distance in sorted(set(table["distance"]))}
    series_styles, x = theme.styles(list(series.values())), _iterations(table)
    systems, panels = list(dict.fromkeys(table["system"])), []
    for system in systems:
        for measure in measures:
            rows = table[(table["system"] == system) & (table["measure"] == measure)]
            lines = [
                Line(
                    distance_rows,
                    "iteration",
                    "value",
                    series[distance],
                    series_styles[series[distance]],
                    ("n",),
                    low="low",
                    high="high",
                )
                for distance, distance_rows in rows.groupby("distance")
            ]
            panels.append(Panel(tuple(lines), x, Axis(LABELS[measure]), 1.1, system if len(systems) > 1 else ""))
    descriptions = [
        f"{row.system}, {row.distance} before: {LABELS[str(row.measure)]} {row.value:.3f}"
        for row in _last_iteration(table).itertuples()
    ]
    return Figure(
        name, "Context by distance", tuple(panels), caption, f"At the end: {'; '.join(descriptions)}.", "page",
        columns=len(measures),
    )  # fmt: skip
