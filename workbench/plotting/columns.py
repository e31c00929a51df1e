"""Checks of the columns of plotted tables, and sentences about each system's rows. Knows no plot."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd


def require_columns(table: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raise ValueError with the table's name, its missing columns and those it has."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"table {name!r} lacks {', '.join(missing)}; it has {', '.join(map(str, table.columns))}")


def said_of_each(table: pd.DataFrame, describe: Callable[[str, pd.DataFrame], str]) -> str:
    """One sentence about the rows of each system, in the table's order."""
    return " ".join(describe(str(system), rows) for system, rows in table.groupby("system", sort=False))
