"""One figure on a page: chart, summary, files for a paper and their command, table, button for the collection.

Files are drawn on request. Computes nothing: `drawing.draw` makes the figure.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import plotly.graph_objects as go
import streamlit as st

from workbench.app.components import word_selection
from workbench.app.components.page_width import page_width
from workbench.app.frame import current, errors_as_messages, escape_markdown
from workbench.export import collection
from workbench.export.files import save
from workbench.figures.drawing import draw
from workbench.figures.registry import spec_of
from workbench.figures.request import Request
from workbench.figures.spec import Recipe, figure_command, paper_options, recipe_of
from workbench.plotting import animation
from workbench.plotting.axes import with_drawn_pieces
from workbench.plotting.fonts import FONT_NAMES, MissingGlyphs, missing_glyphs, substitution_note
from workbench.plotting.grammar import Figure
from workbench.plotting.plotly_renderer import to_plotly
from workbench.plotting.screen_layout import min_width
from workbench.plotting.word_selection import frames
from workbench.store import read_only
from workbench.store.runs import Run

Stamps = tuple[tuple[object, ...], ...]  # a part of a cache's key
FILES = {
    "PDF": ("pdf", "application/pdf"),
    "SVG": ("svg", "image/svg+xml"),
    "PNG": ("png", "image/png"),
    "CSV": ("csv", "text/csv"),
}
WIDTHS = {"column": "Column", "page": "Page"}  # of a paper
_SELECTING = threading.Lock()  # a chart is shared by sessions, each with its own selected words
_MATPLOTLIB = threading.Lock()  # downloads are drawn in threads of their own, and Matplotlib is not thread-safe
_SELECTED, _SELECTED_SIZE = "#D55E00", 15
_CHARTS: WeakKeyDictionary[Figure, dict[tuple[bool, int, bool], go.Figure]] = WeakKeyDictionary()


def show(name: str, request: Request, key: str = "") -> None:
    """Draw a figure with everything below it, or show why it cannot be drawn."""
    with errors_as_messages():
        show_figure(drawn(name, request), figure_command(name, request), key, recipe_of(name, request))


def show_playing(name: str, request: Request, frames: Mapping[str, Request], key: str = "") -> None:
    """Show a figure that plays through those of other requests, by the label of the frame; files are of `request`."""
    with errors_as_messages():
        charts = [_chart_here(drawn(name, of_frame)) for of_frame in frames.values()]
        chart = animation.through(charts, list(frames))
        figure, command = drawn(name, request), figure_command(name, request)
        show_figure(figure, command, key, recipe_of(name, request), chart=chart)


def show_growing(name: str, request: Request, steps: Sequence[int], key: str = "") -> None:
    """Show a figure that plays from left to right, up to each of the steps on its x axis in turn."""
    with errors_as_messages():
        figure, command = drawn(name, request), figure_command(name, request)
        chart = animation.growing(_chart_here(figure), steps)
        show_figure(figure, command, key, recipe_of(name, request), chart=chart)


def show_figure(
    figure: Figure,
    command: str,
    key: str = "",
    recipe: Recipe | None = None,
    selectable: bool = False,
    chart: go.Figure | None = None,
) -> list[dict[str, Any]]:
    """Show a drawn figure and return the selected points (curve_number, point_index, …).

    key: distinguishes two figures of the same name on a page. recipe: needed for the collection. selectable: a click
    selects a point. chart: shown instead of the figure's own.
    """
    key = f"{figure.name}-{key}"
    chart = chart or _chart_here(figure, selectable)
    config = {"displaylogo": False, "responsive": True}
    points: list[dict[str, Any]] = []
    with _scrolled(figure, key), _SELECTING:
        chart.layout.shapes = frames(chart, word_selection.selected())
        if selectable:  # other points reset the selection
            of_these = f"chart-{key}-{zlib.crc32(figure.table.to_csv().encode()):08x}"
            event = st.plotly_chart(
                chart, theme=None, key=of_these, config=config, alt=figure.summary, on_select="rerun",
                selection_mode="points",
            )  # fmt: skip
            points = event["selection"]["points"]
        else:
            st.plotly_chart(chart, theme=None, key=f"chart-{key}", config=config, alt=figure.summary)
    st.text(figure.summary)
    if figure.caption:
        st.caption(escape_markdown(figure.caption))
    _files(figure, command, key, recipe)
    return points


def _chart_here(figure: Figure, selectable: bool = False) -> go.Figure:
    """The chart of a figure for the theme and the width of this page."""
    return _chart(figure, st.context.theme.type == "dark", page_width(), selectable)


def _chart(figure: Figure, dark: bool, width: int, selectable: bool) -> go.Figure:
    """The chart of a figure, cached with the figure, since making it is the slowest step."""
    charts = _CHARTS.setdefault(figure, {})
    if (dark, width, selectable) not in charts:
        chart = to_plotly(figure, dark, width)
        if selectable:
            _mark_selected(chart)
        charts[dark, width, selectable] = chart
    return charts[dark, width, selectable]


@contextmanager
def _scrolled(figure: Figure, key: str) -> Iterator[None]:
    """A container around a chart that keeps the width of its texts on a narrow page and scrolls sideways."""
    box = "scrolled-" + re.sub(r"\W", "-", key)
    with st.container(key=box):
        wide = min_width(figure)
        if wide > page_width():
            st.html(f"<style>.st-key-{box} {{overflow-x: auto}} .st-key-{box} > * {{min-width: {wide}px}}</style>")
        yield


def _mark_selected(chart: go.Figure) -> None:
    """Enlarge and color a selected point and leave the others unchanged, which Plotly would fade."""
    for trace in chart.data:
        if trace.type != "scatter" or trace.mode == "lines":
            continue
        trace.unselected = {"marker": {"opacity": trace.marker.opacity}}
        trace.selected = {"marker": {"opacity": trace.marker.opacity, "color": _SELECTED, "size": _SELECTED_SIZE}}
        if "text" in trace.mode:  # with a color for selected words the others keep theirs
            trace.selected.textfont = {"color": trace.textfont.color}


def drawn(name: str, request: Request) -> Figure:
    """The figure, cached while runs and request are the same."""
    options, palette_names = (
        json.dumps(request.options, sort_keys=True),
        tuple(run.name for run in request.palette_runs),
    )
    request_key = (
        request.test,
        request.sentence,
        request.baseline,
        palette_names,
        options,
        *_files_read(name, request),
    )
    return _drawn(name, stamps(request.runs, *spec_of(name).test_sets(request)), request_key, request)


def _files_read(name: str, request: Request) -> list[tuple[str, int, int]]:
    """Paths, times and sizes of the files that a figure reads in addition to its runs, for the cache key.

    These are files that options name (labels, gold links, an aligner), and those of `FigureSpec.depends_on`.
    """
    read = [Path(value) for value in request.options.values() if isinstance(value, str) and os.path.isfile(value)]
    read += spec_of(name).files(request)
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in read if path.is_file()]


def stamps(runs: Sequence[Run], *tests: str) -> Stamps:
    """A cache key for tables and figures of runs: it changes with the runs' files of a test set."""
    return tuple((run.reference, run.name, *(_stamp(run, test) for test in tests)) for run in runs)


def _stamp(run: Run, test: str) -> tuple[float, ...]:
    names = (f"translations/{test}/meta.json", f"traces/{test}/index.json", f"beam_sizes/{test}.json")
    others = (path for pattern in ("contrast/*.json", "rescoring/*.npz") for path in sorted(run.results.glob(pattern)))
    results = [*(run.results / name for name in names), *others]
    written = (run.log, run.weights)
    return tuple(path.stat().st_mtime if path.is_file() else 0.0 for path in (*results, *written))


@st.cache_resource(max_entries=64, show_spinner="Drawing")
def _drawn(name: str, runs: Stamps, request_key: tuple[object, ...], _request: Request) -> Figure:
    return draw(name, _request)


def file_of(figure: Figure, ending: str, width: str) -> bytes:
    """The figure as the bytes of a file."""
    with _MATPLOTLIB, tempfile.TemporaryDirectory() as folder:
        return save(figure, Path(folder) / f"{figure.name}.{ending}", width).read_bytes()


def _files(figure: Figure, command: str, key: str, recipe: Recipe | None) -> None:
    """One row below a figure: its files for a paper, its table, and a button for the collection."""
    missing = missing_glyphs(figure)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.popover("Export", icon=":material/download:"):
            recipe = _export(figure, command, key, recipe, bool(missing))
        with st.popover("Table"):
            table = with_drawn_pieces(figure.table)
            st.dataframe(table, hide_index=True, placeholder="–", key=f"table-{key}", alt=figure.summary)
        if recipe is not None:
            st.button(
                "Add to collection",
                key=f"basket-{key}",
                on_click=_add,
                args=(recipe,),
                icon=":material/bookmark_add:",
                disabled=read_only.active(),
                help=read_only.WHY if read_only.active() else None,
            )
    if missing:
        st.warning(escape_markdown(str(MissingGlyphs(missing))))


def _export(figure: Figure, command: str, key: str, recipe: Recipe | None, unprintable: bool) -> Recipe | None:
    """Width, font, files and command of a figure; returns its recipe with this width and font."""
    width = st.segmented_control(
        "Width on paper",
        list(WIDTHS),
        format_func=WIDTHS.__getitem__,
        default=figure.width,
        required=True,
        key=f"width-{key}-{figure.width}",  # another, wider figure begins with its own width
    )
    font = st.segmented_control(
        "Font on paper",
        list(FONT_NAMES),
        format_func=FONT_NAMES.__getitem__,
        default=figure.font,
        required=True,
        key=f"font-{key}",
    )
    on_paper = replace(figure, font=font)
    with st.container(horizontal=True, gap="small"):
        for label, (ending, mime) in FILES.items():
            st.download_button(
                label,
                _deferred(on_paper, ending, width),
                f"{figure.name}.{ending}",
                mime,
                key=f"{ending}-{key}",
                on_click="ignore",
                disabled=unprintable and ending != "csv",
                help=f"Download as {label}",
            )
    if note := substitution_note(on_paper):
        st.caption(escape_markdown(note))
    if recipe is not None:
        recipe = recipe.model_copy(update={"width": "" if width == figure.width else width, "font": font})
        command += paper_options(recipe)
    st.code(command, language="bash", wrap_lines=True)
    return recipe


def _add(recipe: Recipe) -> None:
    with errors_as_messages():
        path = collection.file_of(current().root)
        collection.add(path, recipe)
        st.toast(f"In the collection: {len(collection.read(path))}", icon=":material/bookmark_add:")


def _deferred(figure: Figure, ending: str, width: str) -> Callable[[], bytes]:
    return lambda: file_of(figure, ending, width)
