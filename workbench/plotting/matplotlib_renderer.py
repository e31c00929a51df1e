"""Matplotlib renderer of figures for paper: vector cells, embedded fonts, no title (the paper has a caption).

Uses the Agg canvas and no pyplot, so nothing stays open. Matplotlib's global text settings are changed during a
drawing only, behind a lock; use `paper_settings` with the figure's font for saving it too.
"""

from __future__ import annotations

import logging
import math
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from workbench.plotting import theme
from workbench.plotting.fonts import families
from workbench.plotting.grammar import Axis, Figure, Font, Heat, Panel
from workbench.plotting.matplotlib_marks import CELLS, draw, legend_handle

_LOCK = threading.RLock()
_LINE_POINTS = theme.TICK_POINTS * 1.2  # of a label on an axis
_LABELS_INCHES, _BAR_INCHES, _GAP_INCHES = 0.7, 0.55, 0.1  # beside a row of panels; between two of them


@contextmanager
def paper_settings(font: Font = "sans") -> Iterator[None]:
    """Matplotlib's settings for paper: Type 42 fonts, SVG text as text, no mathematics in texts, fallback families."""
    chosen = {
        "font.family": list(families(font)),
        "font.size": theme.TEXT_POINTS,
        "text.parse_math": False,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "nmt-workbench",
        "axes.linewidth": theme.RULE_POINTS,
        "axes.unicode_minus": True,
        "axes.axisbelow": True,
        "xtick.major.width": theme.RULE_POINTS,
        "ytick.major.width": theme.RULE_POINTS,
        "xtick.major.size": 2.0,
        "ytick.major.size": 2.0,
        "xtick.major.pad": 2.0,
        "ytick.major.pad": 2.0,
        "axes.labelpad": 2.5,
        "hatch.linewidth": 0.4,
    }
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    with _LOCK, matplotlib.rc_context(chosen):
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def to_matplotlib(figure: Figure, width: str | float | None = None, grey: bool = False) -> Canvas:
    """The figure at its final size; `width` is a name of `theme.PAPER_WIDTHS` or inches, default the figure's own.

    `grey` draws it as on a grey printer; negative cells of a signed map then have a minus sign.
    """
    inches = theme.PAPER_WIDTHS.get(str(width or figure.width)) or _inches(width)
    figure = replace(figure, columns=_columns_that_fit(figure, inches)) if figure.side_by_side else figure
    rows = math.ceil(len(figure.panels) / figure.columns)
    heights = [max(p.height for p in figure.panels[r * figure.columns : (r + 1) * figure.columns]) for r in range(rows)]
    with paper_settings(figure.font):
        layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, hspace=0.03, wspace=0.03)
        canvas = Canvas(figsize=(inches, sum(heights) + 0.6), layout=layout, dpi=theme.RESOLUTION_DPI)
        FigureCanvasAgg(canvas)
        grid = canvas.subplots(
            rows, figure.columns, squeeze=False, sharex="col" if figure.shared_x else False,
            sharey="row" if figure.shared_y else False, gridspec_kw={"height_ratios": heights},
        )  # fmt: skip
        all_axes = list(grid.ravel())
        for panel, axes in zip(figure.panels, all_axes, strict=False):
            _draw_panel(panel, axes, grey)
        for axes in all_axes[len(figure.panels) :]:
            axes.remove()
        _hide_shared_labels(figure, all_axes)
        _draw_color_bars(figure, canvas, all_axes, grey)
        _draw_legend(figure, canvas, grey)
        canvas.align_ylabels()
        layout.execute(canvas)
        for number, (panel, axes) in enumerate(zip(figure.panels, all_axes, strict=False)):
            _fit_ticks(panel, axes, heights[number // figure.columns])
            _fit_title(axes)
        _fit_height(canvas, layout, all_axes, heights, figure.columns)
        canvas.set_layout_engine("none")  # the layout is done: saving need not repeat it
    return canvas


def _inches(width: str | float | None) -> float:
    if isinstance(width, (int, float)) and width > 0:
        return float(width)
    raise ValueError(f"width {width!r} is neither inches nor one of {', '.join(theme.PAPER_WIDTHS)}")


def _columns_that_fit(figure: Figure, inches: float) -> int:
    """The columns in which every token below a panel has room for an upright label, in rows of about one length.

    All columns if the tokens of a single panel have no room.
    """
    most_tokens = max((len(panel.x.positions) for panel in figure.panels), default=0)
    scales = {(mark.role, mark.limits) for panel in figure.panels for mark in panel.marks if isinstance(mark, Heat)}
    room = inches - _LABELS_INCHES - _BAR_INCHES * len(scales)
    needed = most_tokens * _LINE_POINTS / 72 + _GAP_INCHES
    fitting = min(figure.columns, max(0, int(room / needed)) or figure.columns)
    return math.ceil(len(figure.panels) / math.ceil(len(figure.panels) / fitting))


def _fit_height(
    canvas: Canvas, layout: ConstrainedLayoutEngine, all_axes: list[Axes], heights: list[float], columns: int
) -> None:
    """Give the plotting areas their requested heights, with labels and legend in addition."""
    layout.execute(canvas)
    wide, high = canvas.get_size_inches()
    drawn = sum(all_axes[row * columns].get_position().height for row in range(len(heights))) * high
    canvas.set_size_inches(wide, max(high + sum(heights) - drawn, 0.5))
    layout.execute(canvas)


def _draw_panel(panel: Panel, axes: Axes, grey: bool) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(any(isinstance(mark, Heat) for mark in panel.marks))
    for mark in panel.marks:
        draw(mark, axes, grey)
    _set_axis(panel.x, axes, "x", most=5)
    _set_axis(panel.y, axes, "y", most=min(5, max(2, int(panel.height * 4))))
    if panel.title:
        axes.set_title(panel.title, fontsize=theme.TEXT_POINTS, pad=3)


def _set_axis(axis: Axis, axes: Axes, which: Literal["x", "y"], most: int) -> None:
    paper_axis = axes.xaxis if which == "x" else axes.yaxis
    set_limits = axes.set_xlim if which == "x" else axes.set_ylim
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        paper_axis.set_major_locator(LogLocator(numticks=6))
        paper_axis.set_minor_locator(NullLocator())
        paper_axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if axis.positions:
        positions, texts = axis.labelled()
        paper_axis.set_ticks(positions, labels=texts)
        paper_axis.set_minor_locator(NullLocator())
    elif not axis.log:
        paper_axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    if axis.range is not None:
        set_limits(*axis.range)
    if axis.reversed and not paper_axis.get_inverted():
        paper_axis.set_inverted(True)
    if axis.label:
        paper_axis.set_label_text(axis.label, fontsize=theme.TEXT_POINTS)
    axes.tick_params(axis=which, labelsize=theme.TICK_POINTS)
    if not axis.visible:
        paper_axis.set_visible(False)
        for side in ("bottom", "top") if which == "x" else ("left", "right"):
            axes.spines[side].set_visible(False)


def _fit_ticks(panel: Panel, axes: Axes, height: float) -> None:
    """Rotate or thin the texts of an axis if they would overlap; height: inches that the plotting area will have."""
    points = 72.0 / axes.figure.dpi
    for axis, paper_axis, length in (
        (panel.x, axes.xaxis, axes.get_window_extent().width * points),
        (panel.y, axes.yaxis, height * 72.0),
    ):
        positions, texts = axis.labelled()
        if len(positions) < 2 or not paper_axis.get_visible() or not paper_axis.get_ticklabels():
            continue
        on_paper = paper_axis.get_transform().transform  # an axis may be logarithmic
        low, high = sorted(on_paper(paper_axis.get_view_interval()))
        room = length * np.diff(np.sort(on_paper(np.array(positions)))).min() / (high - low)
        if paper_axis is axes.xaxis:
            widest = max(label.get_window_extent().width * points for label in paper_axis.get_ticklabels())
            if widest + 3 <= room:
                continue
            steep = room < _LINE_POINTS * 1.5
            for label in paper_axis.get_ticklabels():
                vertical = "center" if steep else "top"
                label.set(rotation=90 if steep else 45, rotation_mode="anchor", ha="right", va=vertical)
        if room < _LINE_POINTS:
            every = math.ceil(_LINE_POINTS / room)
            paper_axis.set_ticks(positions[::every], labels=texts[::every])


def _fit_title(axes: Axes) -> None:
    """Break a title that is wider than its panel between its words and at hyphens."""
    text, room = axes.get_title(), axes.get_window_extent().width
    wide = axes.title.get_window_extent().width
    if wide > room:
        most = max(4, int(len(text) * room / wide))
        lines = textwrap.wrap(text, most, break_long_words=False, break_on_hyphens=True)
        axes.set_title("\n".join(lines), fontsize=theme.TEXT_POINTS, pad=3)


def _hide_shared_labels(figure: Figure, all_axes: list[Axes]) -> None:
    last_row = len(figure.panels) - figure.columns
    for number, axes in enumerate(all_axes[: len(figure.panels)]):
        if figure.shared_x and number < last_row:
            axes.set_xlabel("")
        if figure.shared_y and number % figure.columns:
            axes.set_ylabel("")


def _draw_color_bars(figure: Figure, canvas: Canvas, all_axes: list[Axes], grey: bool) -> None:
    """Draw one thin bar of cells for the panels of each scale; Matplotlib's own would put a bitmap into the PDF."""
    shared: dict[tuple, list[Axes]] = {}
    for panel, axes in zip(figure.panels, all_axes, strict=False):
        for mark in panel.marks:
            if isinstance(mark, Heat):
                shared.setdefault((mark.role, mark.limits, mark.label), []).append(axes)
    for (role, limits, label), owners in shared.items():
        scale = theme.color_scale(role, limits, grey)
        cells = next(item for item in owners[0].collections if item.get_gid() == CELLS)
        bar = canvas.colorbar(cells, ax=owners, aspect=30, fraction=0.04, pad=0.015, ticks=scale.ticks)
        if bar.solids is not None:
            bar.solids.set(rasterized=False, edgecolor="face", linewidth=0.1)
        bar.ax.set_yticklabels(scale.texts, fontsize=theme.TICK_POINTS)
        bar.set_label(label, fontsize=theme.TEXT_POINTS)
        bar.outline.set_linewidth(theme.RULE_POINTS)


def _draw_legend(figure: Figure, canvas: Canvas, grey: bool) -> None:
    marks = figure.legend()
    if not marks:
        return
    handles = [legend_handle(mark, grey) for mark in marks]
    painter = FigureCanvasAgg(canvas)
    names, wide = [mark.series for mark in marks], canvas.bbox.width
    for rows in range(1, len(marks) + 1):
        drawn = canvas.legend(
            handles, names, loc="outside upper center", ncols=math.ceil(len(marks) / rows), frameon=False,
            fontsize=theme.TICK_POINTS, handlelength=2.4, columnspacing=1.0, handletextpad=0.5, borderpad=0.1,
            labelspacing=0.25,
        )  # fmt: skip
        if rows == len(marks) or drawn.get_window_extent(painter.get_renderer()).width < wide:
            return
        drawn.remove()
