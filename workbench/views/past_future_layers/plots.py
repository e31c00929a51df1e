"""Plots of PAST and FUTURE layers: states along a sentence and over a test set, and maps of coverage.

One column of panels for each system, one row for each measure. Input are tidy tables of measures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import rank_axis, token_axis, token_text
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import Axis, Figure, Heat, Line, Mark, Panel, Points, SeriesStyle, rule
from workbench.views.attention.plots import LINKS
from workbench.views.past_future.plots import GROUP_LINES

_STEPS = ("system", "measure", "side", "step", "token", "value")
_COURSE = ("system", "measure", "side", "place", "value", "low", "high", "n")
_CELLS = ("system", "step", "word", "step_token", "word_token", "value")
_LABELS_ACROSS = 60
MOST_COVERED = 2.0  # upper end of the color scale: the largest fertility of Tu 2016
SIDES = {
    "past": ("PAST", GROUP_LINES["PAST"]),
    "future": ("FUTURE", GROUP_LINES["FUTURE"]),
    "whole": ("PAST + FUTURE", SeriesStyle("#117733", "longdash", "diamond")),
    "system": ("system", SeriesStyle(theme.BLACK, "dot", "circle")),
}
_UNITS = {
    "norm": "length", "change": "length", "update_gate": "share", "first": "share", "log_prob": "nats", "rank": "rank",
    "distance": "distance",
}  # fmt: skip
_SIGNED = ("cosine_context", "cosine_word", "cosine")
_ROW_INCHES, _LOWEST, _HIGHEST = 0.14, 0.7, 7.0


def content_states(table: pd.DataFrame, labels: Mapping[str, str], caption: str = "") -> Figure:
    """Every measure (named by `labels`) of each side along one sentence, all above the same axis of words.

    A column of panels for each system. Ranks are on a logarithmic axis.
    """
    require_columns(table, _STEPS, "table")
    panels = []
    systems = list(dict.fromkeys(table["system"]))
    axes = {}
    for system in systems:
        tokens = table[table["system"] == system].drop_duplicates("step").sort_values("step")["token"]
        axis = token_axis([str(token) for token in tokens], "target", side="target")
        every = max(axis.every, -(-len(tokens) * len(systems) // _LABELS_ACROSS))
        axes[system] = replace(axis, every=every)
    for measure in dict.fromkeys(table["measure"]):
        for system in systems:
            rows = table[(table["system"] == system) & (table["measure"] == measure)]
            marks: list[Mark] = [rule(0.0)] if measure in _SIGNED or rows.empty else []
            marks += [
                Line(rows[rows["side"] == side], "step", "value", name, style, ("token",))
                for side, (name, style) in SIDES.items()
                if (rows["side"] == side).any()
            ]
            y = rank_axis(int(rows["value"].max())) if measure == "rank" and len(rows) else Axis(_unit(measure))
            title = _title(labels[measure], system, systems) + (": none" if rows.empty else "")
            panels.append(Panel(tuple(marks), axes[system], y, 0.75, title))
    return Figure(
        "content-states",
        "States of PAST and FUTURE layers",
        tuple(panels),
        caption,
        _states_summary(table, labels),
        "page",
        shared_x=True,
        columns=len(systems),
    )


def _unit(measure: str) -> str:
    return _UNITS.get(measure, "cosine")


def _states_summary(table: pd.DataFrame, labels: Mapping[str, str]) -> str:
    """Summary: the lengths of the states if they are drawn, else the names of what is drawn."""
    lengths = table[table["measure"] == "norm"]
    if len(lengths):
        return said_of_each(lengths, _norm_summary)
    return f"Drawn are {', '.join(labels[measure] for measure in dict.fromkeys(table['measure']))}."


def content_course(table: pd.DataFrame, labels: Mapping[str, str], caption: str = "") -> Figure:
    """Means of every measure over the relative position, with 95% intervals."""
    require_columns(table, _COURSE, "table")
    panels = []
    systems = list(dict.fromkeys(table["system"]))
    for measure in dict.fromkeys(table["measure"]):
        for system in systems:
            measure_rows = table[(table["system"] == system) & (table["measure"] == measure)]
            marks: list[Mark] = [rule(0.0)] if measure in _SIGNED else []
            for side, (name, style) in SIDES.items():
                rows = measure_rows[measure_rows["side"] == side].sort_values("place")
                marks += [Line(rows, "place", "value", name, style, ("n",), True, "low", "high")] if len(rows) else []
            x = Axis("t / T", range=(-0.03, 1.03))
            panels.append(Panel(tuple(marks), x, Axis(_unit(measure)), 0.9, _title(labels[measure], system, systems)))
    return Figure(
        "content-course",
        "The course of PAST and FUTURE layers",
        tuple(panel for panel in panels if panel.marks),
        caption,
        _states_summary(table.rename(columns={"place": "step"}), labels),
        "page",
        columns=min(len(panels), max(2, len(systems))),
    )


def _title(label: str, system: str, systems: list[str]) -> str:
    return f"{system}: {label}" if len(systems) > 1 else label


def _norm_summary(system: str, rows: pd.DataFrame) -> str:
    """Summary: the norms of the states at the first and at the last step."""
    changes = []
    for side, side_rows in rows.groupby("side", sort=False):
        ordered = side_rows.sort_values("step")["value"]
        first, last = ordered.iloc[0], ordered.iloc[-1]
        changes.append(f"{SIDES[str(side)][0]} {'grows' if last > first else 'shrinks'} from {first:.2f} to {last:.2f}")
    return f"{system}: the state of {', that of '.join(changes)}."


def coverage_maps(
    cells: pd.DataFrame, links: pd.DataFrame | None = None, caption: str = "", neural: Collection[str] = ()
) -> Figure:
    """Coverage of source words (downwards) after each target word, one map for each system.

    Shaded from 0 to MOST_COVERED. links: cells to mark (system, step, word, `kind` of `attention.LINKS`). neural:
    systems whose cells are states of units, from -1 to 1, and white at 0.
    """
    require_columns(cells, _CELLS, "cells")
    panels = []
    systems = list(dict.fromkeys(cells["system"]))
    for system in systems:
        system_cells = cells[cells["system"] == system]
        down, across = (
            [str(token) for token in system_cells.drop_duplicates(side).sort_values(side)[f"{side}_token"]]
            for side in ("word", "step")
        )
        marks: list[Mark] = [_cells(system_cells, system in neural)]
        if links is not None:
            system_links = links[links["system"] == system]
            marks += [
                Points(system_links[system_links["kind"] == kind], "step", "word", series, style)
                for kind, (series, style) in LINKS.items()
                if (system_links["kind"] == kind).any()
            ]
        height = min(_HIGHEST, max(_LOWEST, _ROW_INCHES * len(down)))
        x, y = token_axis(across, "target", side="target"), token_axis(down, "source", reversed=True, side="source")
        panels.append(Panel(tuple(marks), x, y, height, system))
    summary = said_of_each(
        cells, lambda system, system_cells: _coverage_summary(system, system_cells, system in neural)
    )
    return Figure(
        "coverage-map", "Coverage of source words", tuple(panels), caption, summary, "page",
        columns=min(2, len(panels)),
    )  # fmt: skip


def _cells(system_cells: pd.DataFrame, neural: bool) -> Heat:
    """Heat map of one system, with the color scale of its kind of coverage."""
    hover = ("word_token", "step_token")
    if neural:
        return Heat(
            system_cells, "step", "word", hover=hover, value="value", role="signed", limits=(-1.0, 1.0), label="state"
        )
    return Heat(system_cells, "step", "word", hover=hover, value="value", limits=(0.0, MOST_COVERED), label="coverage")


def _coverage_summary(system: str, cells: pd.DataFrame, neural: bool) -> str:
    last = cells[cells["step"] == cells["step"].max()].sort_values("value")
    least = last.iloc[0]
    if neural:
        return f"{system}: at the end the state of a source word is {last['value'].mean():.2f} on average."
    return (
        f"{system}: at the end a source word is covered {last['value'].mean():.2f} on average, least "
        f"{token_text(str(least['word_token']))!r} ({least['value']:.2f})."
    )
