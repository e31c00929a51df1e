"""Axes of tokens and categories at integer positions, and texts that no renderer may interpret.

Plotly reads labels as HTML (`</s>` vanishes) and `$…$` as TeX; Matplotlib reads `$…$` as mathematics. This module
makes both draw a text as typed.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analyses.attention import END, START, word_numbers
from workbench.plotting.grammar import Axis, Side, cut

if TYPE_CHECKING:
    import pandas as pd

MOST_LABELS = 40
PLACE_SHARED = 0.5  # of the width of a position, shared by series side by side
CONTINUES = "·"  # before a piece that continues a word
_SPACE = "▁"
_NO_PIECES = ("<s>", "</s>", "<unk>", "<pad>")
_LINE_BREAK = "<br>"


def are_pieces(tokens: Iterable[str]) -> bool:
    """Whether the tokens are pieces of words in SentencePiece's notation, not words."""
    return any(token.startswith(_SPACE) for token in tokens)


def token_text(token: str, piece: bool = False) -> str:
    """A token as drawn: a piece without the ▁ that begins a word, and white space, if only that, as a visible ␣.

    piece: of a list of pieces (`are_pieces`), where one that continues a word has · before it.
    """
    continues = piece and not token.startswith(_SPACE) and token not in _NO_PIECES
    drawn = re.sub(rf"[\s{_SPACE}]", "␣", token.removeprefix(_SPACE)) or "␣"
    return f"{CONTINUES}{drawn}" if continues else drawn


def token_texts(tokens: Iterable[str]) -> tuple[str, ...]:
    """All tokens of a sentence as drawn."""
    tokens = tuple(tokens)
    pieces = are_pieces(tokens)
    return tuple(token_text(token, pieces) for token in tokens)


def pieces_text(text: str) -> str:
    """Pieces separated by blanks, as drawn."""
    return " ".join(token_text(piece, piece=True) for piece in text.split(" ")) if text else ""


def with_drawn_pieces(table: pd.DataFrame) -> pd.DataFrame:
    """The table for the screen: columns of pieces, or of several separated by blanks, as drawn."""
    texts = table.select_dtypes(exclude=["number", "bool"])
    of_pieces = [str(name) for name in texts if are_pieces(value for value in texts[name] if isinstance(value, str))]
    drawn = {name: texts[name].map(pieces_text, na_action="ignore") for name in of_pieces}
    return table.assign(**drawn)


def label_every(count: int) -> int:
    """The n at which every nth of `count` tokens gets a label, for at most 40 labels on an axis."""
    return max(1, -(-count // MOST_LABELS))


def token_axis(
    tokens: Sequence[str], label: str = "", reversed: bool = False, first: int = 0, side: Side | None = None
) -> Axis:
    """An axis of tokens at positions first, first + 1, …: repeated tokens have a position each.

    A y axis that reads downwards from its first token is `reversed`. side: of a translation, whose words a reader of
    the figure can select. They count from 0 after <s> and after context that is joined to the sentence by </s>; those
    before have negative numbers.
    """
    positions = tuple(float(first + index) for index in range(len(tokens)))
    texts = token_texts(tokens)
    bounds = (first - 0.5, first + len(tokens) - 0.5)
    numbers = word_numbers(tokens)
    before = [number for number, token in zip(numbers, tokens[:-1], strict=False) if token in (START, END)]
    words = tuple(number - max(before, default=-1) - 1 for number in numbers)
    return Axis(
        label, "tokens", positions, texts, label_every(len(tokens)), bounds, reversed=reversed, side=side,
        words=words if side else (),
    )  # fmt: skip


def category_axis(names: Sequence[str], label: str = "", reversed: bool = False) -> Axis:
    """An axis of categories at positions 0, 1, …, every one labelled."""
    positions = tuple(float(index) for index in range(len(names)))
    return Axis(label, "category", positions, tuple(names), 1, (-0.5, len(names) - 0.5), reversed=reversed)


def matrix_table(
    matrix: np.ndarray,
    x_tokens: Sequence[str] | None = None,
    y_tokens: Sequence[str] | None = None,
    x: str = "x",
    y: str = "y",
    value: str = "value",
) -> pd.DataFrame:
    """A matrix[rows, columns] as a tidy table: y, x, value, with tokens beside their positions if given.

    Raises ValueError if the numbers of tokens and rows or columns differ.
    """
    import pandas as pd

    for tokens, count, name in ((y_tokens, matrix.shape[0], y), (x_tokens, matrix.shape[1], x)):
        if tokens is not None and len(tokens) != count:
            raise ValueError(f"{name} has {len(tokens)} tokens but the matrix has {count} of them: give one token each")
    down, across = np.indices(matrix.shape)
    table = pd.DataFrame({y: down.ravel(), x: across.ravel(), value: np.asarray(matrix, dtype=float).ravel()})
    if y_tokens is not None:
        table[f"{y}_token"] = [y_tokens[row] for row in table[y]]
    if x_tokens is not None:
        table[f"{x}_token"] = [x_tokens[column] for column in table[x]]
    return table


def side_by_side(names: Sequence[str]) -> dict[str, float]:
    """The offset of each series from the middle of a category position, for series drawn side by side."""
    return {name: PLACE_SHARED * ((number + 0.5) / len(names) - 0.5) for number, name in enumerate(names)}


def plotly_text(text: str) -> str:
    """A text that Plotly draws as typed: no pseudo-HTML, no TeX (its test for `$…$` comes before it reads entities)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")


def ems(text: str) -> float:
    """An upper estimate of a text's width in ems: a little more than 0.5 per Latin letter, 1 in wide scripts."""
    return sum(1.0 if unicodedata.east_asian_width(character) in "WF" else 0.6 for character in text)


def cut_to(text: str, room: float) -> str:
    """The text cut to at most `room` ems, with … for the rest; at least three characters stay."""
    if ems(text) <= room:
        return text
    most = len(text) - 1
    while most > 3 and ems(text[: most - 1]) + 1.0 > room:
        most -= 1
    return cut(text, most)


def plotly_lines(text: str, room: float) -> str:
    """The text for Plotly, broken into lines of at most `room` ems; longer words are broken too, at hyphens first."""
    if ems(text) <= room:
        return plotly_text(text)
    most = max(4, int(room * len(text) / ems(text)))
    between_words = textwrap.wrap(text, most, break_on_hyphens=False, break_long_words=False)
    return _LINE_BREAK.join(plotly_text(part) for line in between_words for part in textwrap.wrap(line, most))


def lines(drawn: str) -> int:
    """The number of lines of a text of `plotly_lines`; 0 for an empty one."""
    return drawn.count(_LINE_BREAK) + 1 if drawn else 0


def rank_axis(last: int) -> Axis:
    """A log axis of ranks up to `last`, with a label at each power of ten."""
    powers = tuple(10.0**power for power in range(len(str(last)) + 1))
    texts = tuple(f"{power:,.0f}" for power in powers)
    return Axis("rank", positions=powers, texts=texts, range=(0.8, max(12.0, 1.4 * last)), log=True)
