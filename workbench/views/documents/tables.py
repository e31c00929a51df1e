"""Tables of the page Documents; selecting a row selects its sentence on all pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from workbench.app.components import stepper
from workbench.app.components.figure_view import Stamps, stamps
from workbench.app.components.row_selection import look_at
from workbench.app.components.stepper import set_number
from workbench.app.frame import Frame, escape_markdown, page_file
from workbench.evaluation.document_context import context_aware_runs, reads_after, reads_translations
from workbench.evaluation.scoring import METRIC_NAMES, Counting
from workbench.store.runs import Run, short_names
from workbench.views.documents import measure as documents

Number = st.column_config.NumberColumn


def choose(rows_of_document: Mapping[str, Sequence[int]], sentence: int) -> str:
    """Select box of documents, initially that of the chosen sentence; another one selects its first sentence."""
    ids = list(rows_of_document)
    current = next(document for document, rows in rows_of_document.items() if sentence in rows)

    def go() -> None:
        if not stepper.has_uncounted_clicks("sentence", "document"):
            set_number("sentence", rows_of_document[st.session_state["document"]][0])

    st.session_state["document"] = current
    st.selectbox(
        "Document", ids, key="document", on_change=go,
        format_func=lambda name: f"{name} ({len(rows_of_document[name])} sentences, from {rows_of_document[name][0]})",
    )  # fmt: skip
    stepper.show(
        ids.index(current), len(ids) - 1, ("Document before", "Next document"), partial(_step, rows_of_document),
        "sentence", name="document",
    )  # fmt: skip
    return current


def _step(rows_of_document: Mapping[str, Sequence[int]], sentence: int, delta: int) -> int:
    """First sentence of the document that is `delta` documents after that of a sentence."""
    documents = list(rows_of_document.values())
    index = next(number for number, rows in enumerate(documents) if sentence in rows)
    return documents[min(max(0, index + delta), len(documents) - 1)][0]


@st.cache_data(max_entries=16, show_spinner="Gathering the document")
def _sentences(key: Stamps, test: str, document: str, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return documents.sentences_table(_runs, test, document)


@st.cache_data(max_entries=8, show_spinner="Scoring documents")
def _levels(key: Stamps, test: str, metric: str, counting: Counting, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return documents.levels_table(_runs, test, metric, counting)


def show_sentences(frame: Frame, document: str) -> None:
    """Table of the document's sentences, with a caption of the context that systems read for the chosen one."""
    test, names = frame.view.test, short_names(frame.tested)
    table = _sentences(stamps(frame.tested, test), test, document, frame.tested)
    rows = table["sentence"].tolist()
    wide = {name: st.column_config.TextColumn(name.capitalize(), width="medium") for name in ("source", "reference")}
    outputs = {run.name: st.column_config.TextColumn(names[run.name], width="medium") for run in frame.tested}
    context_columns = {
        f"{run.name} read": st.column_config.TextColumn(f"{names[run.name]} read", width="small", help=_help(run))
        for run in context_aware_runs(frame.tested)
    }
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        column_config={"sentence": Number("Sentence", width="small"), **wide, **outputs, **context_columns},
        height=600 if len(table) > 8 else "content",
        row_height=66,  # above 4 rem Streamlit wraps text
        key="document-sentences",
        on_select=lambda: look_at("document-sentences", rows),
        selection_mode="single-row",
        alt=f"Document {document}, sentence by sentence",
    )
    st.caption(escape_markdown(_read_context_caption(frame, names)))
    with st.container(horizontal=True):
        st.page_link(page_file("context"), label="What they make of its context", icon=":material/arrow_forward:")
        st.page_link(page_file("sentences"), label="Its differences", icon=":material/arrow_forward:")


def _help(run: Run) -> str:
    """Help text of the column with a run's context."""
    where = "around" if reads_after(run) else "before"
    translations = ", with the system's own translations of them" if reads_translations(run) else ""
    return f"Sentences {where} this one in the document{translations}"


def _read_context_caption(frame: Frame, names: Mapping[str, str]) -> str:
    """Caption of the context that systems read for the chosen sentence."""
    test_set, number = frame.tested[0].translations(frame.view.test).test_set, frame.view.sentence
    compatible_runs = context_aware_runs(frame.tested)
    descriptions = [
        f"{names[run.name]} {documents.describe_read_context(run, test_set, number)}" for run in compatible_runs
    ]
    others = [names[run.name] for run in frame.tested if run not in compatible_runs]
    context_text = f"Read beside sentence {number}: {'; '.join(descriptions)}." if descriptions else ""
    single_text = f" {', '.join(others)}: no sentence but its own." if others else ""
    return f"{context_text}{single_text} Select a row to look at its sentence.".lstrip()


_LEVELS = {
    "system": "System",
    "score": Number("Corpus score", format="%.2f", help="Over sentences, as on the page Scores"),
    "mean": Number("Mean of documents", format="%.2f", help="Of each document's own score"),
    "document": Number("Document-level score", format="%.2f", help="Each document as one segment: n-grams reach over "
                       "the ends of sentences (d-BLEU, Liu et al. 2020)"),
    "low": Number("95% CI lower", format="%.2f", help="Bootstrap over documents"),
    "high": Number("95% CI upper", format="%.2f"),
    "documents": Number("Documents"),
    "signature": "Signature",
}  # fmt: skip


def show_levels(frame: Frame, metric: str, counting: Counting) -> None:
    """Table of corpus scores and document scores."""
    table = _levels(stamps(frame.tested, frame.view.test), frame.view.test, metric, counting, frame.tested)
    st.dataframe(
        table.assign(system=table["system"].map(short_names(frame.tested))),
        hide_index=True,
        placeholder="–",
        column_config=_LEVELS,
        key="levels",
        alt=f"{METRIC_NAMES[metric]} of sentences and of documents",
    )
