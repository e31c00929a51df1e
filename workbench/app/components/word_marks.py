"""Texts whose words are marked by clicks. Knows no page and no meaning of the marks.

A click on a word gives it the next mark, after the last one none. Inside a form no click causes a rerun: the marks
arrive with the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from workbench.app.components.word_diff import EMPTY

Marks = dict[str, tuple[int, ...]]
_HERE = Path(__file__)
_word_marks = st.components.v2.component(
    "nmt_workbench_word_marks",
    html='<div class="marks"></div>',
    css=_HERE.with_suffix(".css").read_text(encoding="utf-8"),
    js=_HERE.with_suffix(".js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True)
class MarkedLine:
    """A labelled line of words; `positions` (by mark, from 0) are marked at first."""

    label: str
    words: Sequence[str]
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)


def show(
    line: MarkedLine, others: Sequence[tuple[str, str]], marks: Mapping[str, str], key: str, submissions: int = 0
) -> None:
    """Show a line whose words can be marked, and other texts with their labels below it.

    marks: what each mark is called on the page, in the order of clicks; two at most differ by their look. submissions:
    how often the form was submitted; words of a submitted form take no clicks until the number is another one.
    """
    data = {
        "key": key,
        "label": line.label,
        "words": list(line.words),
        "marks": [{"name": name, "label": label} for name, label in marks.items()],
        "positions": marked(line, marks, key),
        "others": [{"label": label, "text": text or EMPTY} for label, text in others],
        "submissions": submissions,
    }
    _word_marks(key=key, data=data)


def marked(line: MarkedLine, marks: Iterable[str], key: str) -> Marks:
    """The positions of each mark in ascending order, as the browser has reported them, else as they were at first.

    What the browser reports is not trusted: positions beyond the line are left out.
    """
    reported = (st.session_state.get(key) or {}).get("positions")
    positions = reported if isinstance(reported, dict) else line.positions
    words = range(len(line.words))
    return {mark: tuple(word for word in words if word in _sequence(positions.get(mark))) for mark in marks}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
