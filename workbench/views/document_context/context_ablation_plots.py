"""What a context changes in log P of a translation: word by word, sentence by sentence, and against other contexts.

Changes come as a tidy table, a row each; nothing is computed here.
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
_CHANGE = SeriesStyle(theme.PAST, "solid", "square")
_ROUTING = SeriesStyle(theme.NEUTRAL, "solid", "diamond")


def context_changes(words: pd.DataFrame, wholes: pd.DataFrame, caption: str = "") -> Figure:
    """For each system and side a panel of bars, one a context word that is left out, in reading order (`at`, from 0);
    below it, where couplings are known, how far these moved; at the end the same of whole sentences and other contexts.

    change: nats of log P, below zero where the translation became less probable; routing: from 0 to 1, NaN where no
    coupling of the context as it is can stand beside one.
    """
    require_columns(words, _WORDS, "words")
    require_columns(wholes, _WHOLES, "wholes")
    systems = list(dict.fromkeys(wholes["system"]))
    panels: list[Panel] = []
    for system in systems:
        name = f"{system}: " if len(systems) > 1 else ""
        for side, own in words[words["system"] == system].groupby("side", sort=False):
            panels += _of_words(own, f"{name}without a word ({side})")
        panels += _of_wholes(wholes[wholes["system"] == system], f"{name}without more, or with another context")
    return Figure(
        "context-changes", "What the context changes", tuple(panels), caption, said_of_each(words, _most), "page"
    )


def _of_words(rows: pd.DataFrame, title: str) -> list[Panel]:
    x = token_axis([str(word) for word in rows["word"]], "context word left out")
    apart = between_sentences(rows)
    hover = ("word", "distance")
    low, high = min(0.0, rows["change"].min()), max(0.0, rows["change"].max())
    room = (high - low) or 1.0
    labels = sentence_names(rows, "at", high + 0.12 * room)
    bars = Bars(rows, "at", "change", style=_CHANGE, hover=hover)
    y = Axis("change of log P (nats)", range=(low - 0.05 * room, high + 0.22 * room))
    found = [Panel((rule(0.0), bars, *apart, labels), x, y, 1.1, title, linked=title)]
    if rows["routing"].notna().any():
        moved = Bars(rows, "at", "routing", style=_ROUTING, hover=hover)
        found.append(Panel((moved, *apart), x, Axis("couplings moved"), 0.6, linked=title))
    return found


def _of_wholes(rows: pd.DataFrame, title: str) -> list[Panel]:
    changes, y, height = _lying(rows, "change", _CHANGE)
    found = [Panel((rule(0.0, horizontal=False), changes), Axis("change of log P (nats)"), y, height, title)]
    routed = rows[rows["routing"].notna()]
    if len(routed):
        moved, y, height = _lying(routed, "routing", _ROUTING)
        found.append(Panel((moved,), Axis("couplings moved"), y, height))
    return found


def _lying(rows: pd.DataFrame, value: str, style: SeriesStyle) -> tuple[Bars, Axis, float]:
    """Bars with their labels beside them, the axis of the labels, and the height of a panel that holds them."""
    labels = [str(label) for label in rows["label"]]
    placed = rows.assign(at=range(len(rows)))
    bars = Bars(placed, value, "at", style=style, hover=("label",), horizontal=True)
    return bars, category_axis(labels, reversed=True), max(0.5, 0.17 * len(labels))


def _most(system: str, words: pd.DataFrame) -> str:
    row = words.iloc[int(words["change"].abs().to_numpy().argmax())]
    if math.isclose(row["change"], 0, abs_tol=5e-4):
        return f"{system}: no word of the context matters to it."
    where = how_far(int(row["distance"]))
    return f"{system}: most is changed by {row['word']!r}, {where}: {row['change']:+.3f} nats without it."
