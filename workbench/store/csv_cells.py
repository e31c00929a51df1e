"""Tables as CSV whose cells no spreadsheet takes for formulas, and such cells read again. Knows no file.

A text that begins with = + - @, a tab or a line's end would be worked out by Excel and others, whoever wrote it: it
gets an apostrophe before it, which they read as "this is a text". Numbers are left as they are.
"""

from __future__ import annotations

import csv
import re

import pandas as pd

# Behind apostrophes too, so that a text which has one already is told apart from one that was given it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def csv_text(table: pd.DataFrame, float_format: str | None = None) -> str:
    """The table as CSV, without its index."""
    safe = table.rename(columns=_as_text)
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if any(isinstance(value, str) for value in column):
            safe.isetitem(place, [_as_text(value) for value in column])
    text = safe.to_csv(index=False, lineterminator="\n", float_format=float_format)
    if "\r" not in text:
        return text
    # Within a cell it ends a line for most readers, but Python before 3.13 puts no quotes around it.
    return safe.to_csv(index=False, lineterminator="\n", float_format=float_format, quoting=csv.QUOTE_NONNUMERIC)


def read_cell(text: str) -> str:
    """The text that `csv_text` wrote as this cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _as_text(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
