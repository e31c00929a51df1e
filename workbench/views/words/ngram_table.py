"""Tables of the n-grams by which two systems differ; a click on one selects its first sentence."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from workbench.app.components import figure_view
from workbench.app.components.stepper import set_number
from workbench.app.frame import escape_markdown
from workbench.figures.request import Request
from workbench.views.words import figures

_MOST = 200
_COLUMNS = {
    "ngram": st.column_config.TextColumn("n-gram", width=140),
    "reference": st.column_config.NumberColumn("reference", width=75),
    "first": st.column_config.NumberColumn(width=90),
    "second": st.column_config.NumberColumn(width=90),
    "examples": st.column_config.ListColumn("sentences"),
}


def show(request: Request, options: figures.NgramOptions) -> None:
    """Both tables side by side, the baseline's n-grams on the left."""
    first, second = figures.pair(request, options)
    key = figure_view.stamps(request.runs, request.test)
    table = _table(key, request.test, request.base, options, request)
    for side, sign, ahead, behind in zip(st.columns(2), (1, -1), (first, second), (second, first), strict=True):
        rows = figures.ahead(table, sign)
        with side:
            st.subheader(escape_markdown(f"{ahead} rather than {behind}"))
            _show_table(rows.head(_MOST).reset_index(drop=True), {"first": first, "second": second}, f"ngrams-{sign}")
            st.caption(f"{len(rows):,} n-grams" + (f", the first {_MOST} shown" if len(rows) > _MOST else "") + ".")


@st.cache_data(max_entries=8, show_spinner="Counting n-grams")
def _table(
    key: figure_view.Stamps, test: str, baseline: str, options: figures.NgramOptions, _request: Request
) -> pd.DataFrame:
    return figures.ngram_table(_request, options)


def _show_table(rows: pd.DataFrame, names: dict[str, str], key: str) -> None:
    if rows.empty:
        st.text("None.")
        return
    systems = {column: st.column_config.NumberColumn(name, width=80) for column, name in names.items()}
    st.dataframe(
        rows[list(_COLUMNS)],
        hide_index=True,
        placeholder="–",
        height=360,
        column_config={**_COLUMNS, **systems},
        key=key,
        on_select=lambda: _select_example(key, rows),
        selection_mode="single-row",
        alt="N-grams with how often each system matches them; select one to look at an example",
    )


def _select_example(key: str, rows: pd.DataFrame) -> None:
    selected_rows = st.session_state[key]["selection"]["rows"]
    if selected_rows and len(rows["examples"][selected_rows[0]]):
        set_number("sentence", int(rows["examples"][selected_rows[0]][0]))
