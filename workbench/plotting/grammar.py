"""Grammar of figures: panels of marks, each a tidy table with named columns. Independent of the two renderers.

Positions are numbers. Tokens and categories have integer positions with texts beside them (`axes.token_axis`), since a
repeated token on a category axis would share its column. Colors are those of white paper; a renderer translates them
for a dark page. Nothing here computes a measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Dash = Literal["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "none"]
Marker = Literal[
    "circle", "square", "triangle-up", "triangle-down", "diamond", "cross", "x", "pentagon", "hexagon", "star", "none"
]
ColorRole = Literal["probability", "signed", "relative"]
Align = Literal["centre", "right", "left", "above", "below"]
Side = Literal["source", "target"]
Font = Literal["sans", "times", "computer-modern"]


# Of a label on an axis; the whole text is in the hover text and in the table.
MOST_CHARACTERS = {"tokens": 24, "category": 48, "number": 48}
_INSIDE = 0.04  # of a cell, between its edge and an outline


def cut(text: str, most: int) -> str:
    """The text cut to at most `most` characters, with … for the rest."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True)
class SeriesStyle:
    """Color, dash and marker of one series: always together, so that no meaning depends on color alone.

    `width` (line) and `size` (marker diameter) are points at final size on paper; a hollow marker is a published value.
    """

    colour: str = "#000000"  # the name in exported files
    dash: Dash = "solid"
    marker: Marker = "circle"
    hollow: bool = False
    width: float = 1.0
    size: float = 4.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Axis:
    """One axis. `positions` have `texts`; `every` labels each nth of them (hover shows all).

    `range` is (low, high) in data units, also on a log axis; `reversed` puts the low end at the top or the right. An
    axis along a text has a `side`, and `words` has the number of the word at each position, counted from 0.
    """

    label: str = ""
    kind: Literal["number", "tokens", "category"] = "number"
    positions: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    every: int = 1
    range: tuple[float, float] | None = None
    log: bool = False
    reversed: bool = False
    visible: bool = True
    side: Side | None = None
    words: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.positions) != len(self.texts):
            raise ValueError(
                f"axis {self.label!r} has {len(self.positions)} positions but {len(self.texts)} texts; give as many"
            )

    def labelled(self) -> tuple[tuple[float, ...], tuple[str, ...]]:
        """The labelled positions, and the labels, long ones cut."""
        most = MOST_CHARACTERS[self.kind]
        return self.positions[:: self.every], tuple(cut(text, most) for text in self.texts[:: self.every])

    def text_at(self, position: float) -> str | None:
        """The text at a position, None if it has none."""
        return dict(zip(self.positions, self.texts, strict=True)).get(position)


@dataclass(frozen=True, eq=False)
class Mark:
    """A table and the names of its drawn columns. Subclasses define the drawing."""

    kind: ClassVar[str] = "mark"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y")

    table: pd.DataFrame
    x: str
    y: str
    series: str = ""
    style: SeriesStyle = SeriesStyle()
    hover: tuple[str, ...] = ()
    legend: bool = True

    def __post_init__(self) -> None:
        for column in self.columns():
            if column not in self.table.columns:
                near = get_close_matches(column, [str(name) for name in self.table.columns], n=1)
                hint = f"; the nearest is {near[0]!r}" if near else f"; it has {list(self.table.columns)}"
                raise ValueError(f"{self.kind} {self.series!r} draws column {column!r}, which its table lacks{hint}")

    def columns(self) -> list[str]:
        """Names of the columns drawn, then those shown on hover, each once."""
        drawn = [getattr(self, name) for name in self.column_fields]
        return list(dict.fromkeys(column for column in [*drawn, *self.hover] if column is not None))

    def rows(self) -> pd.DataFrame:
        """The drawn part of the table."""
        return self.table[self.columns()].reset_index(drop=True)

    def values(self, column: str) -> np.ndarray:
        """One column as float64."""
        return self.table[column].to_numpy(dtype=float, na_value=np.nan)


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line through the rows in their order, broken at missing y, with a band if `low` and `high` name columns."""

    kind: ClassVar[str] = "line"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "low", "high")
    low: str | None = None
    high: str | None = None
    band_opacity: float = 0.18


@dataclass(frozen=True, eq=False)
class Bars(Mark):
    """Bars centered at x from `base` (0) to y; `width` in units of x. Horizontal bars swap x and y."""

    kind: ClassVar[str] = "bars"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "base")
    base: str | None = None
    width: float = 0.8
    horizontal: bool = False


@dataclass(frozen=True, eq=False)
class Points(Mark):
    """Markers; `low` and `high` end the error bars along `error_axis`, `size` is a column of diameters in points."""

    kind: ClassVar[str] = "points"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "low", "high", "size")
    low: str | None = None
    high: str | None = None
    size: str | None = None
    error_axis: Literal["x", "y"] = "y"


@dataclass(frozen=True, eq=False)
class Segments(Mark):
    """Straight segments from (x, y) to (x_end, y_end), such as the edges of a tree; one style for all of them."""

    kind: ClassVar[str] = "segments"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "x_end", "y_end")
    x_end: str = "x_end"
    y_end: str = "y_end"


@dataclass(frozen=True, eq=False)
class Outlines(Mark):
    """Rectangles around cells of a heat map, centered at (x, y), `across` cells wide and `down` cells high."""

    kind: ClassVar[str] = "outlines"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y")
    across: float = 1.0
    down: float = 1.0

    def path(self) -> tuple[np.ndarray, np.ndarray]:
        """All rectangles as one line, x and y, broken by NaN after each; they keep off the cells beside theirs."""
        left_right = (self.across / 2 - _INSIDE) * np.array([-1, 1, 1, -1, -1, np.nan])
        up_down = (self.down / 2 - _INSIDE) * np.array([-1, -1, 1, 1, -1, np.nan])
        x, y = self.values(self.x)[:, None] + left_right, self.values(self.y)[:, None] + up_down
        return x.ravel(), y.ravel()


@dataclass(frozen=True, eq=False)
class Labels(Mark):
    """Texts at points, drawn as typed; `align` is the side of the point on which the text is drawn.

    For texts on cells of a heat map, `ground` is the column of the cells' values and `ground_role` and `ground_limits`
    are those of the map: the text is then black or white, whichever contrasts more.
    """

    kind: ClassVar[str] = "labels"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "text", "ground")
    text: str = "text"
    align: Align = "centre"
    font_points: float = 6.5
    bold: bool = False
    offset_points: float = 3.0
    ground: str | None = None
    ground_role: ColorRole = "probability"
    ground_limits: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Heat(Mark):
    """Cells at integer positions x (columns) and y (rows), one row of the table for each cell.

    `limits` are fixed, never taken from the data, so that two heat maps can be compared. Role "probability" goes from
    white to blue, "signed" from red over white at 0 to blue, "relative" is a ratio (to the uniform value) shaded by its
    logarithm, from red over white at 1 to blue.
    """

    kind: ClassVar[str] = "heat"
    column_fields: ClassVar[tuple[str, ...]] = ("x", "y", "value")
    value: str = "value"
    role: ColorRole = "probability"
    limits: tuple[float, float] = (0.0, 1.0)
    label: str = ""
    signs: bool = True  # a grey printer marks negative cells of a signed map; not where texts on them have a sign

    def cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values [rows, columns] (missing cells NaN), integer column positions, integer row positions.

        Raises ValueError if two rows of the table are for the same cell.
        """
        columns, rows = self.values(self.x).astype(int), self.values(self.y).astype(int)
        if self.table.duplicated([self.x, self.y]).any():
            first = self.table[self.table.duplicated([self.x, self.y])].iloc[0]
            raise ValueError(f"heat map has two values at {self.x}={first[self.x]}, {self.y}={first[self.y]}; keep one")
        across = np.arange(columns.min(), columns.max() + 1)
        down = np.arange(rows.min(), rows.max() + 1)
        matrix = np.full((len(down), len(across)), np.nan)
        matrix[rows - down[0], columns - across[0]] = self.values(self.value)
        return matrix, across, down


@dataclass(frozen=True, eq=False)
class Rule(Mark):
    """A reference line across the panel at `table[y][0]` (horizontal) or `table[x][0]` (vertical): see `rule`."""

    kind: ClassVar[str] = "rule"
    column_fields: ClassVar[tuple[str, ...]] = ("x",)
    horizontal: bool = True

    @property
    def position(self) -> float:
        """Its position in data units."""
        return float(self.table[self.x].iloc[0])


def rule(value: float, horizontal: bool = True, series: str = "", style: SeriesStyle | None = None) -> Rule:
    """A reference line at `value`, horizontal by default."""
    import pandas as pd

    style = style or SeriesStyle("#777777", "dot", "none", width=0.75)
    table = pd.DataFrame({"value": [float(value)]})
    return Rule(table, "value", "value", series, style, horizontal=horizontal, legend=bool(series))


@dataclass(frozen=True, eq=False)
class Panel:
    """Marks on one pair of axes, drawn in order. `height` is inches of plotting area on paper; the screen scales it.

    Panels with the same `linked` zoom together along x, if not all panels of the figure share it; this has no effect
    on paper.
    """

    marks: tuple[Mark, ...]
    x: Axis = Axis()
    y: Axis = Axis()
    height: float = 1.5
    title: str = ""
    linked: str = ""


@dataclass(frozen=True, eq=False)
class Figure:
    """A table plus a specification. Panels fill `columns` from left to right, then downwards.

    `side_by_side`: what the columns show is compared, so a narrow screen keeps them beside each other and scrolls;
    paper has fewer columns where not every token would have a label.

    `width` and `font` are those on paper; a page of the app has fonts of its own.

    `caption` says what is drawn and by which rules, `summary` is one sentence for readers who cannot see it,
    `provenance` has runs, signatures and seeds and is stored in the metadata of every exported file.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    caption: str = ""
    summary: str = ""
    width: Literal["column", "page"] = "column"
    font: Font = "sans"
    shared_x: bool = False
    shared_y: bool = False
    columns: int = 1
    side_by_side: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The tidy table exactly as drawn: panel, mark and series, then the drawn and hovered columns of each mark."""
        import pandas as pd

        pieces = []
        for number, panel in enumerate(self.panels, 1):
            for mark in panel.marks:
                rows = mark.rows()
                integer_columns = {name: "Int64" for name in rows if pd.api.types.is_integer_dtype(rows[name])}
                rows = rows.astype(integer_columns).rename(
                    columns={n: f"{n}_" for n in ("panel", "mark", "series") if n in rows}
                )
                labels = {
                    "panel": panel.title or panel.y.label or str(number),
                    "mark": mark.kind,
                    "series": mark.series,
                }
                pieces.append(rows.assign(**labels)[[*labels, *rows.columns]])
        return pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame()

    def legend(self) -> list[Mark]:
        """The first mark of every series in the legend, in drawing order; empty if there is only one series."""
        series = [m for panel in self.panels for m in panel.marks if m.series and not isinstance(m, Heat | Labels)]
        first_marks: dict[str, Mark] = {}
        for mark in series:
            if mark.legend:
                first_marks.setdefault(mark.series, mark)
        return list(first_marks.values()) if len({mark.series for mark in series}) > 1 else []

    def texts(self) -> Iterator[str]:
        """Every text printed on paper, i.e. all but the title, which the caption replaces."""
        yield from (mark.series for mark in self.legend())
        for panel in self.panels:
            yield panel.title
            for axis in (panel.x, panel.y):
                yield axis.label
                yield from axis.texts
            for mark in panel.marks:
                if isinstance(mark, Labels):
                    yield from mark.table[mark.text].astype(str)
                if isinstance(mark, Heat):
                    yield mark.label
