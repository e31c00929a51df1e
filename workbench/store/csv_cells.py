"""CSV text whose cells no spreadsheet evaluates as formulas, and the way back. Knows no file.

Excel and others evaluate a text that begins with = + - @, a tab or a line end, whoever wrote it. Such a text gets an
apostrophe before it, which marks it as text. Numbers stay unchanged.
"""

from __future__ import annotations

import csv
import re

import pandas as pd

# With leading apostrophes too, so that a text's own apostrophe differs from an added one.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def csv_text(table: pd.DataFrame, float_format: str | None = None) -> str:
    """The table as CSV, without its index."""
    safe = table.rename(columns=_as_text)
    for position in range(safe.shape[1]):
        column = safe.iloc[:, position]
        if any(isinstance(value, str) for value in column):
            safe.isetitem(position, [_as_text(value) for value in column])
    text = safe.to_csv(index=False, lineterminator="\n", float_format=float_format)
    if "\r" not in text:
        return text
    # Within a cell it ends a line for most readers, but Python before 3.13 puts no quotes around it.
    return safe.to_csv(index=False, lineterminator="\n", float_format=float_format, quoting=csv.QUOTE_NONNUMERIC)


def read_cell(text: str) -> str:
    """The original text of a cell that `csv_text` wrote."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _as_text(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
