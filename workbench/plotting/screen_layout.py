"""Layout of a figure on a screen of a given width: columns that fit, margins, rows of the legend, word sizes.

All in pixels. No browser measures the texts, so their widths are upper estimates (`axes.ems`). Knows no Plotly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Literal

import numpy as np

from workbench.plotting import theme
from workbench.plotting.axes import cut_to, ems, lines, plotly_lines
from workbench.plotting.grammar import Axis, Bars, ColorRole, Figure, Heat, Labels, Line, Panel, Points, Rule, Segments

DEFAULT_WIDTH = 760  # of a page beside the sidebar on a small laptop
FONT, TITLE_FONT = 12, 14
BAR, BAR_ROOM = 12, 76  # the colour bar; the bar with its labels
TITLE_PAD = 6
_LINE, _TITLE_LINE = 15, 19  # of a text on several lines
_TITLE, _PANEL_TITLE, _EDGE, _COLUMN_GAP = 30, 26, 14, 20
_FLAT_LABELS, _NUMBERS = 46, 34  # below a panel: ticks, labels and title; left of it: the numbers of an axis
_MIN_PANEL_WIDTH = 140
PLAIN_POWERS = 5  # up to this power of ten, and down to its inverse, numbers are in full: 0.0001 and not 100µ
NUMBER_ROOM = 55  # of a number below a panel, so that its neighbor does not touch it
_TWO_AT_LEAST = 5  # of so many numbers at most, Plotly sets two or more
_MARGINS = (0.03, 0.06, 0.1)  # that Plotly may leave beside what is drawn, as shares of it
_TICK = 40  # least length of an axis per tick of Plotly
_MIN_LABEL_WIDTH = 13.0  # of upright texts beside each other
LEGEND_LINE = 56  # of a key: twice the longest dash and its gap, so that it looks like the line
_LEGEND_KEY, _LEGEND_ROW = LEGEND_LINE + 15, 29  # a key with the space after it; a row of keys
_MAX_SLANTED_HEIGHT = 150
_MIN_WORD_SCALE, _MAX_WORD_SCALE = 1.5, 1.75  # pixels per point of the words in a panel

BarKey = tuple[ColorRole, tuple[float, float], str]


@dataclass(frozen=True, eq=False)
class Layout:
    """A figure with as many columns as fit, and the pixels of its parts.

    title: the height above the last line of the title; panel: the width of one; heights: of the rows; word_scale:
    pixels per point of the words in a panel; bars: slot, first and last row of each color bar.
    """

    figure: Figure
    width: int
    left: int
    right: int
    title: int
    top: int
    bottom: int
    column_gap: int
    row_gap: int
    panel: float
    heights: tuple[float, ...]
    word_scale: float
    bars: dict[BarKey, tuple[int, int, int]]

    @property
    def legend(self) -> int:
        """The distance of the legend from the upper edge."""
        return self.title + 20

    @property
    def area(self) -> float:
        return sum(self.heights)

    @property
    def height(self) -> float:
        return self.area + self.row_gap * (len(self.heights) - 1) + self.top + self.bottom


def bar_key(heat: Heat) -> BarKey:
    """The key of a heat map's color bar: maps with the same key share one."""
    return heat.role, heat.limits, heat.label


def min_width(figure: Figure) -> int:
    """The width below which texts of the figure would overlap in any layout."""
    figure = figure if figure.side_by_side else replace(figure, columns=1)
    fixed_width = _space_right(figure) + math.ceil(figure.columns * _min_panel_width(figure))
    width = fixed_width + _beside_panels(figure, DEFAULT_WIDTH // 2)
    while (wider := fixed_width + _beside_panels(figure, width)) > width:  # a wider page shows more of those texts
        width = wider
    return width


def lay_out(figure: Figure, width: int) -> Layout:
    """The layout for a screen of `width` pixels, or of `min_width` if that is more."""
    width = max(width, min_width(figure))
    figure = replace(figure, columns=_columns_that_fit(figure, width))
    left, right = _space_left(figure, width), _space_right(figure)
    panel_width = _panel_width(figure, figure.columns, width)
    panel_title_lines = max(
        (lines(plotly_lines(panel.title, panel_width / FONT)) for panel in figure.panels), default=0
    )
    bottom = max((_space_below(panel, panel_width) for panel in figure.panels), default=_FLAT_LABELS)
    heights = tuple(theme.SCREEN_PIXELS_PER_INCH * max(panel.height for panel in row) for row in _rows(figure))
    title_lines_height = _TITLE_LINE * max(0, lines(title_lines(figure, width)) - 1)
    return Layout(
        figure=figure,
        width=width,
        left=left,
        right=right,
        title=TITLE_PAD + title_lines_height,
        top=_TITLE
        + title_lines_height
        + (_PANEL_TITLE + _LINE * (panel_title_lines - 1) if panel_title_lines else 0)
        + legend_height(figure, width),
        bottom=bottom,
        column_gap=_column_gap(figure, width),
        row_gap=(22 if figure.shared_x else max(58, bottom))
        + (3 + _LINE * panel_title_lines if panel_title_lines else 0),
        panel=panel_width,
        heights=heights,
        word_scale=_word_scale(figure, panel_width),
        bars=_bars(figure),
    )


def title_lines(figure: Figure, width: int) -> str:
    """The title, broken into lines that fit."""
    return plotly_lines(figure.title, (width - _space_left(figure, width) - _EDGE) / TITLE_FONT)


def series_lines(series: str, room: float) -> str:
    """The name of a series, broken into lines that fit beside its key in a legend as wide as `room`."""
    return plotly_lines(series, (room - _LEGEND_KEY) / FONT)


def legend_height(figure: Figure, width: int) -> int:
    """The height of the legend above the panels, with names in rows as Plotly sets them."""
    room = width - _space_left(figure, width) - _space_right(figure)
    rows: list[list[str]] = []
    used = math.inf
    for name in (series_lines(mark.series, room) for mark in figure.legend()):
        name_width = FONT * max(ems(line) for line in name.split("<br>")) + _LEGEND_KEY
        if used + name_width > room:
            rows.append([])
            used = 0.0
        rows[-1].append(name)
        used += name_width
    return sum(_LEGEND_ROW + _LINE * (max(map(lines, row)) - 1) for row in rows)


def ticks(axis: Axis, room: float, vertical: bool = False) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The labelled positions of an axis `room` pixels long, and their texts: only every nth if all of them would touch.

    vertical: a y axis, whose texts lie flat.
    """
    positions, texts = axis.labelled()
    if len(positions) < 2:
        return positions, texts
    flat = FONT * max(map(ems, texts)) + 6
    spacing = _MIN_LABEL_WIDTH if vertical else min(_MIN_LABEL_WIDTH, flat)
    every = math.ceil(spacing / _spacing(axis, positions, room) - 1e-6)
    return positions[:: max(1, every)], texts[:: max(1, every)]


def text_room(width: int) -> float:
    """The maximal width of the texts of a vertical axis in ems: two fifths of a narrow page."""
    return 0.4 * width / FONT


def _rows(figure: Figure) -> list[tuple[Panel, ...]]:
    starts = range(0, len(figure.panels), figure.columns)
    return [figure.panels[start : start + figure.columns] for start in starts]


def _columns_that_fit(figure: Figure, width: int) -> int:
    if figure.side_by_side:
        return figure.columns
    least = max(_MIN_PANEL_WIDTH, _min_panel_width(figure))
    fitting = (n for n in range(figure.columns, 1, -1) if _panel_width(figure, n, width) >= least)
    return next(fitting, 1)


def _panel_width(figure: Figure, columns: int, width: int) -> float:
    figure = replace(figure, columns=columns)
    return (width - _beside_panels(figure, width) - _space_right(figure)) / columns


def _beside_panels(figure: Figure, width: int) -> int:
    """The space left of all panels of a row."""
    return _space_left(figure, width) + _column_gap(figure, width) * (figure.columns - 1)


def _column_gap(figure: Figure, width: int) -> int:
    """The space left of panels that are not in the first column."""
    right_panels = [panel for number, panel in enumerate(figure.panels) if number % figure.columns]
    return _COLUMN_GAP if figure.shared_y else _max_label_width(right_panels, width)


def _space_left(figure: Figure, width: int) -> int:
    """The space left of the panels of the first column."""
    return _max_label_width(figure.panels[:: figure.columns], width)


def _max_label_width(panels: Sequence[Panel], width: int) -> int:
    return max((_label_width(panel, width) for panel in panels if panel.y.visible), default=_EDGE)


def _label_width(panel: Panel, width: int) -> int:
    texts = [cut_to(text, text_room(width)) for text in panel.y.labelled()[1]] or _end_numbers(panel)
    title = lines(plotly_lines(panel.y.label, panel.height * theme.SCREEN_PIXELS_PER_INCH / FONT))
    return 10 + _LINE * title + max(_NUMBERS, int(FONT * max(map(ems, texts), default=0.0)) + 4)


def _end_numbers(panel: Panel) -> list[str]:
    """The numbers at the ends of a linear y axis, with as many digits as Plotly's ticks have.

    Plotly sets at most nine ticks at steps of 1, 2 or 5 times a power of ten. Empty for an axis that reaches a million,
    whose numbers Plotly shortens.
    """
    low, high = panel.y.range or _span(panel)
    largest = max(-low, high)
    if panel.y.log or not 0 < high - low < math.inf or largest >= 10.0 ** (PLAIN_POWERS + 1):
        return []
    height = panel.height * theme.SCREEN_PIXELS_PER_INCH
    min_step = (high - low) / (min(max(height / _TICK, 4), 9) + 1)
    power = math.floor(math.log10(min_step))
    digits = max(0, -power if min_step <= 5 * 10.0**power else -power - 1)
    comma = "," if largest >= 1e4 else ""
    return [f"{end:{comma}.{digits}f}" for end in (low, high)]


def most_numbers(panel: Panel, room: float) -> int:
    """The most numbers below a panel `room` pixels wide: as many as have room, more where only one could be there."""
    most = max(3, int(room / NUMBER_ROOM))
    low, high = panel.x.range or _span(panel, "x")
    if panel.x.log or not 0 < high - low < math.inf:
        return most
    margins = (0.0,) if panel.x.range else (0.0, *_MARGINS)
    alone = any(_ticks_between(low - share * (high - low), high + share * (high - low), most) < 2 for share in margins)
    return max(_TWO_AT_LEAST, most) if alone else most


def _ticks_between(low: float, high: float, most: int) -> int:
    """How many ticks Plotly sets: at the least step of 2, 5 or 10 times a power of ten that makes `most` steps."""
    least_step = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least_step))
    step = power * next(factor for factor in (2, 5, 10) if factor * power >= least_step)
    return math.floor(high / step) - math.ceil(low / step) + 1


def _span(panel: Panel, which: Literal["x", "y"] = "y") -> tuple[float, float]:
    """The least and the largest value along an axis of the marks that need one."""
    marks = [mark for mark in panel.marks if isinstance(mark, Line | Bars | Points | Segments)]
    arrays = [mark.values(getattr(mark, which)) for mark in marks]
    with_errors = [
        m for m in marks if (isinstance(m, Line) and which == "y") or (isinstance(m, Points) and m.error_axis == which)
    ]
    arrays += [mark.values(name) for mark in with_errors for name in (mark.low, mark.high) if name is not None]
    arrays += [np.zeros(1)] * any(isinstance(mark, Bars) for mark in marks)
    across = [mark for mark in panel.marks if isinstance(mark, Rule) and which == "x" and not mark.horizontal]
    arrays += [np.array([mark.position]) for mark in across]
    values = np.concatenate([*arrays, np.empty(0)])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _space_right(figure: Figure) -> int:
    slots = [slot for slot, _, _ in _bars(figure).values()]
    return _EDGE + BAR_ROOM * (max(slots) + 1 if slots else 0)


def _bars(figure: Figure) -> dict[BarKey, tuple[int, int, int]]:
    rows: dict[BarKey, list[int]] = {}
    for number, row in enumerate(_rows(figure)):
        for heat in (mark for panel in row for mark in panel.marks if isinstance(mark, Heat)):
            rows.setdefault(bar_key(heat), []).append(number)
    slots_and_rows: dict[BarKey, tuple[int, int, int]] = {}
    for key, panel_rows in rows.items():
        used = {
            slot
            for slot, first, last in slots_and_rows.values()
            if first <= max(panel_rows) and min(panel_rows) <= last
        }
        slots_and_rows[key] = next(slot for slot in count() if slot not in used), min(panel_rows), max(panel_rows)
    return slots_and_rows


def _spacing(axis: Axis, positions: tuple[float, ...], room: float) -> float:
    low, high = axis.range or (min(positions), max(positions))
    if axis.log:
        return room * math.log(positions[1] / positions[0]) / math.log(high / low)
    return room * abs(positions[1] - positions[0]) / (high - low)


def _space_below(panel: Panel, room: float) -> int:
    """The room for the labels below a panel, which Plotly slants by 30° or 90° if they would touch.

    It is fixed for a figure, so that the figure does not jump while a slider moves.
    """
    positions, texts = ticks(panel.x, room)
    title = _LINE * max(0, lines(plotly_lines(panel.x.label, room / FONT)) - 1)
    longest = FONT * max(map(ems, texts), default=0.0)
    if len(positions) < 2 or longest + 4 <= _spacing(panel.x, positions, room):
        return _FLAT_LABELS + title
    if _spacing(panel.x, positions, room) < 2 * 1.3 * FONT:  # too near for 30°
        return _FLAT_LABELS + title + min(_MAX_SLANTED_HEIGHT, int(longest) - _LINE)
    return _FLAT_LABELS + title + min(_MAX_SLANTED_HEIGHT, int(longest / 2))


def _min_panel_width(figure: Figure) -> float:
    """The least width of a panel at which its labels and words do not overlap."""
    labels = [len(panel.x.labelled()[0]) * _MIN_LABEL_WIDTH for panel in figure.panels if panel.x.visible]
    words = [_min_panel_points(panel) * _MIN_WORD_SCALE for panel in figure.panels]
    return max([_MIN_PANEL_WIDTH, *labels, *words])


def _word_scale(figure: Figure, panel_width: float) -> float:
    points = max((_min_panel_points(panel) for panel in figure.panels), default=0.0)
    return min(_MAX_WORD_SCALE, max(_MIN_WORD_SCALE, panel_width / points)) if points else _MAX_WORD_SCALE


def _min_panel_points(panel: Panel) -> float:
    """The least width of a panel in points at which its words do not overlap at their size on paper."""
    if panel.x.range is None or panel.x.log:
        return 0.0
    low, high = panel.x.range
    lanes: dict[float, list[tuple[float, float, float]]] = {}
    for x, y, left, right in _word_extents(panel):
        lanes.setdefault(y, []).append((x, left, right))
    points = [right / (high - x) for lane in lanes.values() for x, left, right in lane if not left and x < high]
    for lane in lanes.values():
        for (x, _, right), (next_x, left, _) in pairwise(sorted(lane)):
            if next_x - x >= 0.5:  # nearer ones are marks of several series at the same position
                points.append((right + left) / (next_x - x))
    return max(points, default=0.0) * (high - low)


def _word_extents(panel: Panel) -> Iterator[tuple[float, float, float, float]]:
    """Position of every word in data units, and its extent to the left and right in points."""
    for mark in panel.marks:
        if isinstance(mark, Labels):
            texts = mark.table[mark.text].astype(str)
            for x, y, text in zip(mark.values(mark.x), mark.values(mark.y), texts, strict=True):
                points = ems(text) * mark.font_points
                yield x, y, *((0.0, points + mark.offset_points) if mark.align == "right" else (points / 2, points / 2))
