"""Table of all sentences on the page Sentences, with filters; a click on a row selects the sentence.

The sentences stay in the server's memory without copies; the browser gets a part of the rows at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from analyses.sentences import DELTA, REFERENCE, SENTENCE, SOURCE, Sentences, select
from workbench.app.components import figure_view, upload
from workbench.app.components.row_selection import look_at
from workbench.app.sidebar import whole_number_bind
from workbench.figures.request import Request
from workbench.store import segment_annotations
from workbench.views.segments import measure as segments

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

ANYWHERE, OUTPUTS = "anywhere", "outputs"
_HEIGHT = 420
MOST_ROWS = 1000  # in the browser; Streamlit cannot select rows of a table that it sends in pieces


def gathered(request: Request, metrics: Sequence[str], root: Path) -> tuple[Sentences, list[str]]:
    """Sentences of the runs, cached until runs or annotations change."""
    annotation_stamps = tuple(
        (str(path), path.stat().st_mtime) for path in segment_annotations.files(root, request.test)
    )
    key = figure_view.stamps(request.runs, request.test)
    return _gathered(key, annotation_stamps, (request.test, request.base, *metrics), request, tuple(metrics), root)


@st.cache_resource(max_entries=2, show_spinner="Gathering the sentences")
def _gathered(
    key: figure_view.Stamps,
    annotation_stamps: tuple[tuple[str, float], ...],
    settings: tuple[str, ...],
    _request: Request,
    _metrics: tuple[str, ...],
    _root: Path,
) -> tuple[Sentences, list[str]]:
    return segments.of_request(_request, _metrics, _root)


def add_annotations(root: Path, test: str, segments: int) -> None:
    """Upload of a file with labels or scores of the sentences."""

    def keep(file: UploadedFile) -> str:
        return f"Kept as {segment_annotations.save(root, test, file.name, file.getvalue(), segments)}."

    upload.take_in([ending[1:] for ending in segment_annotations.ENDINGS], f"annotations-{test}", keep)


def chosen_rows(sentences: Sentences) -> tuple[np.ndarray, str]:
    """Controls for text, label, range and order; returns the selected sentences in order, and what orders them."""
    wide, column, order, direction = st.columns([4, 2, 3, 2], vertical_alignment="bottom")
    contains = wide.text_input("Contains", key="contains", bind="query-params", placeholder="text, case is ignored")
    places = [ANYWHERE, *sentences.texts.columns, OUTPUTS]
    searched = column.selectbox("In", places, key="in", bind="query-params")
    orders = [SENTENCE, *sentences.values.columns, *sentences.labels.columns]
    sort_column = order.selectbox("Sort by", orders, key="sort", bind="query-params")
    descending = direction.toggle("Largest first", key="largest", bind="query-params")
    texts = {ANYWHERE: (), OUTPUTS: sentences.systems}.get(searched, (searched,))
    rows = select(sentences, contains, texts, _range(sentences), _labels(sentences), sort_column, descending)
    return rows, sort_column


def _range(sentences: Sentences) -> dict[str, tuple[float, float]]:
    column, low, high = st.columns([4, 2, 2])
    options = list(sentences.values.columns)
    name = column.selectbox(
        "Only where", options, index=None, placeholder="a score or length …", key="where", bind="query-params"
    )
    least, most = (
        column.number_input(label, value=None, key=key, bind=whole_number_bind(key), disabled=name is None)
        for column, label, key in ((low, "is at least", "least"), (high, "and at most", "most"))
    )
    if name is None or (least is None and most is None):
        return {}
    return {name: (-np.inf if least is None else least, np.inf if most is None else most)}


def _labels(sentences: Sentences) -> dict[str, list[str]]:
    if sentences.labels.empty:
        return {}
    column, values = st.columns([2, 6])
    name = column.selectbox("Label", list(sentences.labels.columns), key="label", bind="query-params")
    available = sorted(sentences.labels[name].unique())
    selected = values.multiselect(
        "is one of", available, key=f"labels-{name}", bind="query-params", format_func=_label_text
    )
    return {name: selected} if selected else {}


def _label_text(label: str) -> str:
    return label or "(none)"


def show(sentences: Sentences, rows: np.ndarray, columns: Sequence[str], sort_column: str) -> None:
    """Table of the rows; a click on one selects the sentence.

    Number and sort column (unless told the first difference to the baseline) stay in sight at the left.
    """
    if not len(rows):
        st.text("No sentence fulfils these conditions.")
        return
    part, part_text = _part(rows)
    second = _second(sort_column, columns)
    table = shown(sentences, part, columns, second)
    numbers = {
        name: st.column_config.NumberColumn(
            format="%.3f" if _needs_decimals(sentences.values[name]) else "%.1f", pinned=name == second
        )
        for name in table.columns
        if pd.api.types.is_float_dtype(table[name])
    }
    texts = {name: st.column_config.TextColumn(width=380) for name in (SOURCE, REFERENCE)}
    key = "sentences-" + hashlib.sha256(part.tobytes() + repr(table.columns.tolist()).encode()).hexdigest()[:16]
    st.dataframe(
        table,
        hide_index=True,
        height=min(_HEIGHT, 38 + 35 * len(part)),
        column_config={**texts, **numbers, SENTENCE: st.column_config.NumberColumn(width=80, pinned=True)},
        placeholder="",
        key=key,
        on_select=lambda: look_at(key, part),
        selection_mode="single-row",
        alt="Sentences beside their scores; select one to look at it",
    )
    st.caption(f"{len(rows):,} of {len(sentences):,} sentences{part_text}; select a row to look at it below.")


def _part(rows: np.ndarray) -> tuple[np.ndarray, str]:
    """Rows of the part that is chosen by a control, and a note for the caption."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    parts = -(-len(rows) // MOST_ROWS)
    if st.session_state.get("rows", 1) > parts:
        st.session_state["rows"] = parts
    label = f"Part (1 to {parts}, {MOST_ROWS:,} sentences each)"
    number = int(st.number_input(label, 1, parts, key="rows", bind=whole_number_bind("rows"), width=260))
    begin = (number - 1) * MOST_ROWS
    part = rows[begin : begin + MOST_ROWS]
    return part, f", of which {begin + 1:,} to {begin + len(part):,} are shown"


def _second(sort_column: str, columns: Sequence[str]) -> str | None:
    """The column of values beside the sentence's number: the one that sorts, else the first difference, if any."""
    if sort_column in columns:
        return sort_column
    return next((name for name in columns if name.startswith(DELTA)), None)


def shown(sentences: Sentences, rows: np.ndarray, columns: Sequence[str], second: str | None = None) -> pd.DataFrame:
    """Rows as a table: number, the column of values named `second`, source, labels, the other columns of values."""
    parts = (sentences.texts[[SOURCE]], sentences.labels, sentences.values[list(columns)])
    table = pd.concat([part.iloc[rows] for part in parts], axis="columns")
    if second is not None:
        table.insert(0, second, table.pop(second))
    table.insert(0, SENTENCE, rows)
    return table.reset_index(drop=True)


def _needs_decimals(column: pd.Series) -> bool:
    """Return True for ratios and probabilities, which need more decimals."""
    return bool(column.abs().max() <= 5)
