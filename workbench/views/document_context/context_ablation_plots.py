"""Plots of the change of a translation's log P without words or sentences of its context, or with other contexts.

Input are tidy tables, one row per change.
"""

from __future__ import annotations

import math

import pandas as pd

from analyses.documents import how_far
from workbench.plotting import theme
from workbench.plotting.axes import category_axis, token_axis
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import Axis, Bars, Figure, Panel, SeriesStyle, rule
from workbench.views.document_context.plots import between_sentences, sentence_names

_WORDS = ("system", "side", "distance", "at", "word", "change", "routing")
_WHOLES = ("system", "label", "change", "routing")
_LEAST_MOVED = 0.001  # end of an axis of changes of couplings, at least
_CHANGE = SeriesStyle(theme.PAST, "solid", "square")
_ROUTING = SeriesStyle(theme.NEUTRAL, "solid", "diamond")


def context_changes(words: pd.DataFrame, wholes: pd.DataFrame, caption: str = "") -> Figure:
    """Bars of the change of log P: one panel of left-out words for each system and side, then one of whole contexts.

    words: in reading order (`at`, from 0). change: nats of log P, below zero if the translation became less probable.
    routing: change of the couplings from 0 to 1, in panels below; NaN if couplings cannot be compared.
    """
    require_columns(words, _WORDS, "words")
    require_columns(wholes, _WHOLES, "wholes")
    systems = list(dict.fromkeys(wholes["system"]))
    panels: list[Panel] = []
    for system in systems:
        name = f"{system}: " if len(systems) > 1 else ""
        for side, rows in words[words["system"] == system].groupby("side", sort=False):
            panels += _word_panels(rows, f"{name}without a word ({side})")
        panels += _context_panels(wholes[wholes["system"] == system], f"{name}without more, or with another context")
    return Figure(
        "context-changes",
        "What the context changes",
        tuple(panels),
        caption,
        said_of_each(words, _largest_change),
        "page",
    )


def _word_panels(rows: pd.DataFrame, title: str) -> list[Panel]:
    x = token_axis([str(word) for word in rows["word"]], "context word left out")
    boundaries = between_sentences(rows)
    hover = ("word", "distance")
    low, high = min(0.0, rows["change"].min()), max(0.0, rows["change"].max())
    span = (high - low) or 1.0
    labels = sentence_names(rows, "at", high + 0.12 * span)
    bars = Bars(rows, "at", "change", style=_CHANGE, hover=hover)
    y = Axis("change of log P (nats)", range=(low - 0.05 * span, high + 0.22 * span))
    panels = [Panel((rule(0.0), bars, *boundaries, labels), x, y, 1.1, title, linked=title)]
    if rows["routing"].notna().any():
        moved = Bars(rows, "at", "routing", style=_ROUTING, hover=hover)
        panels.append(Panel((moved, *boundaries), x, _moved_axis(rows), 0.6, linked=title))
    return panels


def _context_panels(rows: pd.DataFrame, title: str) -> list[Panel]:
    changes, y, height = _horizontal_bars(rows, "change", _CHANGE)
    panels = [Panel((rule(0.0, horizontal=False), changes), Axis("change of log P (nats)"), y, height, title)]
    routed = rows[rows["routing"].notna()]
    if len(routed):
        moved, y, height = _horizontal_bars(routed, "routing", _ROUTING)
        panels.append(Panel((moved,), _moved_axis(routed), y, height))
    return panels


def _moved_axis(rows: pd.DataFrame) -> Axis:
    """The axis of changes of couplings, which does not magnify rounding errors."""
    return Axis("couplings moved", range=(0.0, max(_LEAST_MOVED, 1.05 * rows["routing"].max())))


def _horizontal_bars(rows: pd.DataFrame, value: str, style: SeriesStyle) -> tuple[Bars, Axis, float]:
    """Horizontal bars, the axis of their labels, and the height of their panel."""
    labels = [str(label) for label in rows["label"]]
    placed = rows.assign(at=range(len(rows)))
    bars = Bars(placed, value, "at", style=style, hover=("label",), horizontal=True)
    return bars, category_axis(labels, reversed=True), max(0.5, 0.17 * len(labels))


def _largest_change(system: str, words: pd.DataFrame) -> str:
    row = words.iloc[int(words["change"].abs().to_numpy().argmax())]
    if math.isclose(row["change"], 0, abs_tol=5e-4):
        return f"{system}: no word of the context matters to it."
    where = how_far(int(row["distance"]))
    return f"{system}: most is changed by {row['word']!r}, {where}: {row['change']:+.3f} nats without it."
