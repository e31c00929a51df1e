"""External annotations of the segments of a test set: labels, and scores such as COMET's or human ratings.

One row per segment, in the order of the test set. Input is lines or the content of a table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pandas as pd

_DELIMITERS = "\t;,"


def from_lines(lines: Sequence[str], name: str, segments: int) -> pd.DataFrame:
    """One column called `name` from lines of one label or number each.

    Numbers if every non-empty line is one, else labels. Raises ValueError if the numbers of lines and segments differ.
    """
    _check(len(lines), "lines", name, segments)
    return pd.DataFrame({name: _numbers_or_labels(pd.Series([line.strip() for line in lines], dtype="str"))})


def from_table(content: str, name: str, segments: int) -> pd.DataFrame:
    """The columns of a CSV or TSV with a header and one row per segment, called `NAME: COLUMN`.

    The delimiter is tab, semicolon or comma, whichever the header has most of. Raises ValueError if the numbers of rows
    and segments differ, for rows longer or shorter than the header (with their number), and for unnamed columns.
    """
    header = content.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    try:
        columns, *rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    except ValueError:
        raise ValueError(f"{name}: the table is empty; it needs a header and a row a segment.") from None
    except csv.Error as error:
        raise ValueError(f"{name}: not a table ({error}); close every quotation mark, double those inside.") from None
    columns = [column.strip() for column in columns]
    if "" in columns or len(set(columns)) < len(columns):
        raise ValueError(f"{name}: the header is {columns}; give every column a name of its own.")
    if len(columns) == 1:  # an empty cell is then an empty line, which `csv` reads as a row without cells
        rows = [row or [""] for row in rows]
    _check(len(rows), "rows below its header", name, segments)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(f"{name}: row {number} has {len(row)} cells but the header has {len(columns)}; mend it.")
    cells = {column: [row[index].strip() for row in rows] for index, column in enumerate(columns)}
    return pd.DataFrame(
        {f"{name}: {column}": _numbers_or_labels(pd.Series(texts, dtype="str")) for column, texts in cells.items()}
    )


def _check(count: int, what: str, name: str, segments: int) -> None:
    if count != segments:
        raise ValueError(f"{name}: has {count} {what} but the test set has {segments} segments; give one for each.")


def _numbers_or_labels(column: pd.Series) -> pd.Series:
    filled = column[column != ""]
    numbers = pd.to_numeric(filled, errors="coerce")
    return numbers.reindex(column.index).astype(float) if len(filled) and numbers.notna().all() else column
