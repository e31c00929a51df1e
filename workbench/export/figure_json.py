"""A figure as plain JSON: everything that was drawn, readable without this workbench."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd

from workbench.plotting.grammar import Figure, Mark, Panel

VERSION = 1


def to_spec(figure: Figure, tables: bool = True) -> dict[str, Any]:
    """The specification as JSON types; with `tables` each mark has its drawn rows."""
    fields = {field.name: getattr(figure, field.name) for field in dataclasses.fields(figure) if field.name != "panels"}
    panels = [_panel(panel, tables) for panel in figure.panels]
    return {"version": VERSION, **fields, "provenance": dict(figure.provenance), "panels": panels}


def _panel(panel: Panel, tables: bool) -> dict[str, Any]:
    return {
        "title": panel.title,
        "height": panel.height,
        "x": dataclasses.asdict(panel.x),
        "y": dataclasses.asdict(panel.y),
        "marks": [_mark(mark, tables) for mark in panel.marks],
    }


def _mark(mark: Mark, tables: bool) -> dict[str, Any]:
    fields = {field.name: getattr(mark, field.name) for field in dataclasses.fields(mark) if field.name != "table"}
    fields["style"] = dataclasses.asdict(mark.style)
    if tables:
        fields["table"] = _table(mark.rows())
    return {"kind": mark.kind, **fields}


def _table(rows: pd.DataFrame) -> dict[str, Any]:
    """Columns and rows with missing values as null; numbers keep all digits (pandas' own writer rounds)."""
    data = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    return {"columns": list(rows.columns), "data": data}
