"""What a family asks of the tables it draws: that they have its columns. It knows no family."""

from __future__ import annotations

import pandas as pd


def require_columns(table: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raises ValueError that names the table, its missing columns and those it has."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"table {name!r} lacks {', '.join(missing)}; it has {', '.join(map(str, table.columns))}")
