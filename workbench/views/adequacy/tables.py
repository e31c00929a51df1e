"""Table of sentences of the page Adequacy, sorted by omitted and repeated words; a click selects a sentence."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from workbench.app.components import sentence_texts
from workbench.app.components.figure_view import Stamps, stamps
from workbench.app.components.row_selection import look_at
from workbench.app.frame import Frame
from workbench.evaluation import adequacy
from workbench.store.runs import Run, short_names

MOST_SENTENCES = 500  # shown
Number = st.column_config.NumberColumn
_COLUMNS = {
    "sentence": Number("Sentence", width="small"),
    "system": "System",
    "missed": st.column_config.NumberColumn(
        "Under-translated", help="Source words that a reference covers, not the system"
    ),
    "repeated": st.column_config.NumberColumn(
        "Over-translated", help="Source words with the same translation too often"
    ),
    "source": st.column_config.TextColumn("Source", width="large"),
    "translation": st.column_config.TextColumn("Translation", width="large"),
}


@st.cache_data(max_entries=8, show_spinner="Aligning")
def _sentences(key: Stamps, test: str, towards: str, _runs: tuple[Run, ...]) -> pd.DataFrame:
    aligner, _ = adequacy.aligner_of(_runs, test)
    return adequacy.sentences_table(_runs, test, aligner, towards)


def choose_references(references: int) -> dict[str, str]:
    """Control for the references that count, as an option of the figure; empty for a single reference."""
    if references < 2:
        return {}
    names = {towards: adequacy.reference_text(references, towards) for towards in adequacy.TOWARDS}
    choice = st.selectbox(
        "Reference set", list(names), format_func=names.__getitem__, key="towards", bind="query-params"
    )
    return {"towards": choice}


def show_sentences(frame: Frame, towards: str = adequacy.TOWARDS[0]) -> None:
    """Table of sentences, and the texts of the chosen one."""
    runs, test = frame.tested, frame.view.test
    table = _sentences(stamps(runs, test), test, towards, runs)
    if table.empty:
        st.text("No translation under- or over-translates a word that the aligner knows.")
        return
    shown = table.head(MOST_SENTENCES)
    numbers = shown["sentence"].tolist()
    st.dataframe(
        shown.assign(system=shown["system"].map(short_names(runs))),
        hide_index=True,
        placeholder="–",
        column_config=_COLUMNS,
        height=300 if len(shown) > 7 else "content",
        key="inadequate",
        on_select=lambda: look_at("inadequate", numbers),
        selection_mode="single-row",
        alt="Sentences that leave out or repeat source words",
    )
    limit_text = f", the first {MOST_SENTENCES} shown" if len(table) > MOST_SENTENCES else ""
    st.caption(
        f"{len(table)} translations leave out or repeat something{limit_text}; select a row to look at its sentence."
    )
    sentence_texts.show(frame)
