"""Word diff of two texts on one line: words only in the second are underlined, words only in the first struck out.

All text is escaped in the HTML. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from analyses.sentences import Difference

EMPTY = "(empty)"
_LINE = "display:grid;grid-template-columns:minmax(7rem,14%) 1fr;gap:1rem;margin:0 0 .35rem"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext"
_ADDED = "background:rgba(0,114,178,.25);text-decoration:underline;text-underline-offset:.2em"
_MISSING = "background:rgba(230,159,0,.22);text-decoration:line-through;opacity:.75"


def html_line(label: str, differences: Sequence[Difference], note: str = "") -> str:
    """A labelled line with marked differences; `note` is shown below the label."""
    text = "".join(_marked(piece, before) for before, piece in zip([None, *differences], differences, strict=False))
    small = f'<br><small style="opacity:.7">{escape(note)}</small>' if note else ""
    nothing = "" if any(piece.second for piece in differences) else f'<span style="opacity:.6">{EMPTY}</span> '
    side = f"<div>{escape(label)}{small}</div>"
    return f'<div style="{_LINE}">{side}<div dir="auto" style="{_TEXT}">{nothing}{text}</div></div>'


def show(lines: Sequence[str]) -> None:
    """Show the lines below each other."""
    st.html("".join(lines))


def plain(text: str) -> list[Difference]:
    """A text without a comparison, as a single piece."""
    return [Difference(True, text, text)] if text else []


def _marked(piece: Difference, before: Difference | None) -> str:
    if piece.equal:
        return escape(piece.second)
    if piece.second:
        return f'<ins style="{_ADDED}">{escape(piece.second)}</ins>'
    space = " " if before and before.equal and not before.second[-1:].isspace() and before.first[-1:].isspace() else ""
    return f'{space}<del style="{_MISSING}">{escape(piece.first)}</del>'
