"""Rows of tables as records, a dictionary each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]


def records(table: pd.DataFrame) -> list[Record]:
    """The rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
