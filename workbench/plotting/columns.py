"""What families ask of the tables they draw, and how they say something of each system's rows. It knows no family."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd


def require_columns(table: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raises ValueError that names the table, its missing columns and those it has."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"table {name!r} lacks {', '.join(missing)}; it has {', '.join(map(str, table.columns))}")


def said_of_each(table: pd.DataFrame, said: Callable[[str, pd.DataFrame], str]) -> str:
    """A sentence on the rows of each system, in the table's order."""
    return " ".join(said(str(system), own) for system, own in table.groupby("system", sort=False))
