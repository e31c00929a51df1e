"""One figure on a page: the chart, its summary in words, its table, its files for a paper, the command that draws it.

Files are drawn when they are asked for. It computes nothing: `drawing.draw` makes the figure.
"""

from __future__ import annotations

import json
import shlex
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from workbench import drawing
from workbench.drawing import Request
from workbench.export.files import save
from workbench.figures.fonts import MissingGlyphs, missing_glyphs
from workbench.figures.grammar import Figure
from workbench.figures.plotly_renderer import to_plotly
from workbench.frame import as_typed, sentences_for_errors
from workbench.runs import Run

FILES = {
    "PDF": ("pdf", "application/pdf"),
    "SVG": ("svg", "image/svg+xml"),
    "PNG": ("png", "image/png"),
    "CSV": ("csv", "text/csv"),
}
WIDTHS = {"column": "Column width", "page": "Page width"}  # of a paper
_MATPLOTLIB = threading.Lock()  # downloads are drawn on threads of their own; Matplotlib is not made for that


def show(name: str, request: Request, key: str = "") -> None:
    """Draw one of the drawings with all that stands below it, or say why it cannot be drawn."""
    with sentences_for_errors():
        show_figure(drawn(name, request), figure_command(name, request), key)


def show_figure(figure: Figure, command: str, key: str = "") -> None:
    """A figure that is there already; `key` tells two of one kind on one page apart."""
    key = f"{figure.name}-{key}"
    dark = st.context.theme.type == "dark"
    chart = to_plotly(figure, dark)
    st.plotly_chart(
        chart, theme=None, key=f"chart-{key}", config={"displaylogo": False, "responsive": True}, alt=figure.summary
    )
    st.text(figure.summary)
    if figure.caption:
        st.caption(as_typed(figure.caption))
    _files(figure, command, key)


def drawn(name: str, request: Request) -> Figure:
    """The figure, from the cache where runs and request are the same."""
    asked = (request.test, request.sentence, request.baseline, json.dumps(request.options, sort_keys=True))
    return _drawn(name, tuple((run.name, *stamp(run, request.test)) for run in request.runs), asked, request)


def stamp(run: Run, test: str) -> tuple[float, ...]:
    """Changes whenever what a run says about a test set does."""
    names = (f"translations/{test}/meta.json", f"traces/{test}/index.json", f"beam_sizes/{test}.json")
    results = [run.results / name for name in names]
    return tuple(path.stat().st_mtime if path.is_file() else 0.0 for path in (*results, run.folder / "training.jsonl"))


@st.cache_data(max_entries=64, show_spinner="Drawing")
def _drawn(name: str, runs: tuple[tuple[object, ...], ...], asked: tuple[object, ...], _request: Request) -> Figure:
    return drawing.draw(name, _request)


def figure_command(name: str, request: Request) -> str:
    """The command line that draws the same figure."""
    words = ["workbench", "figure", name]
    for run in request.runs:
        words += ["--run", run.reference]
    words += ["--test", request.test] if request.test else []
    words += ["--sentence", str(request.sentence)] if drawing.of_a_sentence(name) else []
    for option, value in request.options.items():
        words += ["--set", f"{option}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join([*words, "--out", f"{name}.pdf"])


def file_of(figure: Figure, ending: str, width: str) -> bytes:
    """The figure as the bytes of a file."""
    with _MATPLOTLIB, tempfile.TemporaryDirectory() as folder:
        return save(figure, Path(folder) / f"{figure.name}.{ending}", width).read_bytes()


def _files(figure: Figure, command: str, key: str) -> None:
    missing = missing_glyphs(figure)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        width = st.segmented_control(
            "Width on paper",
            list(WIDTHS),
            format_func=WIDTHS.__getitem__,
            default=figure.width,
            required=True,
            key=f"width-{key}",
            label_visibility="collapsed",
            help="Width of PDF, SVG and PNG: a column or a page of a paper",
        )
        for label, (ending, mime) in FILES.items():
            st.download_button(
                label,
                _deferred(figure, ending, width),
                f"{figure.name}.{ending}",
                mime,
                key=f"{ending}-{key}",
                on_click="ignore",
                disabled=bool(missing) and ending != "csv",
                help=f"Download as {label}",
            )
        with st.popover("Table"):
            st.dataframe(figure.table, hide_index=True, key=f"table-{key}", alt=figure.summary)
        with st.popover("Copy as command"):
            st.code(command, language="bash", wrap_lines=True)
    if missing:
        st.warning(as_typed(str(MissingGlyphs(missing))))


def _deferred(figure: Figure, ending: str, width: str) -> Callable[[], bytes]:
    return lambda: file_of(figure, ending, width)
