"""A figure as plain JSON and back, so that a file can be drawn again without the run it came from."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd

from workbench.figures.grammar import Axis, Figure, Mark, Panel, SeriesStyle

VERSION = 1
_MARKS: dict[str, type[Mark]] = {kind.kind: kind for kind in Mark.__subclasses__()}


def to_spec(figure: Figure, tables: bool = True) -> dict[str, Any]:
    """The specification as JSON types; with `tables` each mark carries its drawn rows, column by column."""
    made = {field.name: getattr(figure, field.name) for field in dataclasses.fields(figure) if field.name != "panels"}
    panels = [_panel(panel, tables) for panel in figure.panels]
    return {"version": VERSION, **made, "provenance": dict(figure.provenance), "panels": panels}


def from_spec(made: dict[str, Any]) -> Figure:
    """The figure of a specification with tables; what a file says besides is passed over.

    Raises ValueError for another version or missing tables.
    """
    if made.get("version") != VERSION:
        raise ValueError(f"the specification has version {made.get('version')!r}; this workbench reads {VERSION}")
    named = {field.name for field in dataclasses.fields(Figure)} - {"panels"}
    rest = {name: value for name, value in made.items() if name in named}
    return Figure(panels=tuple(_read_panel(panel) for panel in made["panels"]), **rest)


def _panel(panel: Panel, tables: bool) -> dict[str, Any]:
    return {
        "title": panel.title,
        "height": panel.height,
        "x": dataclasses.asdict(panel.x),
        "y": dataclasses.asdict(panel.y),
        "marks": [_mark(mark, tables) for mark in panel.marks],
    }


def _mark(mark: Mark, tables: bool) -> dict[str, Any]:
    made = {field.name: getattr(mark, field.name) for field in dataclasses.fields(mark) if field.name != "table"}
    made["style"] = dataclasses.asdict(mark.style)
    if tables:
        made["table"] = _table(mark.rows())
    return {"kind": mark.kind, **made}


def _table(rows: pd.DataFrame) -> dict[str, Any]:
    """Columns and rows with missing values as null; numbers keep every digit (pandas' own writer rounds)."""
    data = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    return {"columns": list(rows.columns), "data": data}


def _read_panel(made: dict[str, Any]) -> Panel:
    marks = tuple(_read_mark(mark) for mark in made["marks"])
    return Panel(marks, _read_axis(made["x"]), _read_axis(made["y"]), made["height"], made["title"])


def _read_axis(made: dict[str, Any]) -> Axis:
    bounds = None if made["range"] is None else tuple(made["range"])
    return Axis(**{**made, "positions": tuple(made["positions"]), "texts": tuple(made["texts"]), "range": bounds})


def _read_mark(made: dict[str, Any]) -> Mark:
    if "table" not in made:
        raise ValueError("the figure's specification carries no tables; read the .json beside the drawing")
    rest = {name: value for name, value in made.items() if name not in ("kind", "table", "style", "hover")}
    if "limits" in rest:
        rest["limits"] = tuple(rest["limits"])
    table = pd.DataFrame(made["table"]["data"], columns=made["table"]["columns"])
    return _MARKS[made["kind"]](table=table, style=SeriesStyle(**made["style"]), hover=tuple(made["hover"]), **rest)
