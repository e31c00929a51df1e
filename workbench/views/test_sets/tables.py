"""Tables of the page Test sets; selecting a line or document selects its sentence on all pages."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from workbench.app.components.figure_view import Stamps, stamps
from workbench.app.components.row_selection import look_at
from workbench.app.frame import Frame
from workbench.evaluation.scoring import METRIC_NAMES, Counting
from workbench.store.runs import Run, short_names
from workbench.views.test_sets import measure

Number = st.column_config.NumberColumn
MOST_LINES = 500  # shown

_SETS = {
    "test": "Test set",
    "sentences": Number("Sentences", format="localized"),
    "documents": Number("Documents", format="localized"),
    "references": "References",
    "source_words": Number("Source words", format="%.1f", help="Mean, parted by spaces"),
    "reference_words": Number("Reference words", format="%.1f", help="Mean of the first reference, parted by spaces"),
    "longest": Number("Longest source", help="Words"),
    "empty": Number("Empty", help="Sources without a character"),
    "odd": Number("Suspicious characters", help="Sources with control characters, invisible or lost characters"),
    "repeated": Number("Repeated", help="Sources that were there before"),
    "digest": st.column_config.TextColumn("Version", help="sha256 of sources and references, its first twelve signs"),
    "runs": st.column_config.TextColumn("Runs", width="large"),
}
_OUTPUTS = {
    "system": "System",
    "words": Number("Words", format="%.1f", help="Mean, parted by spaces"),
    "characters": Number("Characters", format="%.1f"),
    "ratio": Number("Length ratio", format="%.3f", help="Characters, to those of the first reference"),
    "empty": Number("Empty"),
    "odd": Number("Suspicious characters", help="Outputs with control characters, invisible or lost characters"),
    "repeated": Number("Repeated", help="The same as an earlier output"),
    "copies": Number("Copied source", help="Outputs that are the same as the source"),
}
_CORPORA = {
    "data": "Data",
    "split": "Split",
    "sentences": Number("Sentence pairs", format="localized"),
    "documents": Number("Documents", format="localized"),
    "length": Number("Document length", format="%.2f", help="Sentences of a document on average"),
    "runs": st.column_config.TextColumn("Runs", width="large"),
}
_FINDINGS = {
    "sentence": Number("Sentence", width="small"),
    "side": "Where",
    "finding": "Finding",
    "detail": "Detail",
    "text": st.column_config.TextColumn("Line", width="large"),
}


@st.cache_data(max_entries=8, show_spinner="Reading the test sets")
def _sets(key: Stamps, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return measure.testsets_table(_runs)


@st.cache_data(max_entries=8, show_spinner="Reading the translations")
def _outputs(key: Stamps, test: str, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return measure.outputs_table(_runs, test)


@st.cache_data(max_entries=8, show_spinner="Looking at every line")
def _findings(key: Stamps, test: str, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return measure.findings_table(_runs, test)


@st.cache_data(max_entries=16, show_spinner="Scoring the documents")
def _documents(key: Stamps, test: str, metric: str, counting: Counting, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return measure.documents_table(_runs, test, metric, counting)


def show_sets(frame: Frame) -> None:
    """Table of all test sets of the chosen runs; versions of the same name have a row each."""
    tests = sorted({test for run in frame.chosen for test in run.tests()})
    table = _sets(stamps(frame.chosen, *tests), frame.chosen)
    st.dataframe(
        table, hide_index=True, placeholder="–", column_config=_SETS, key="sets", alt="Test sets of the chosen runs"
    )
    several = table["test"].duplicated()
    if several.any():
        st.warning("Two versions go by one name: the runs were tested on different sentences or references.")


@st.cache_data(max_entries=8, show_spinner="Reading the prepared text")
def _corpora(key: Stamps, _runs: tuple[Run, ...]) -> pd.DataFrame:
    return measure.corpora_table(_runs)


def show_corpora(frame: Frame) -> None:
    """Table of the runs' training, validation and test text, in the form of Table 1 of Yang 2019."""
    with_data = tuple(run for run in frame.chosen if not run.outside)
    table = _corpora(stamps(with_data, frame.view.test), with_data)
    if table.empty:
        return
    st.subheader("Corpora")
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        column_config=_CORPORA,
        key="corpora",
        alt="Prepared text of the chosen runs",
    )
    st.caption("In the form of Table 1 of Yang 2019, which the gallery shows.")


def show_outputs(frame: Frame) -> None:
    table = _outputs(stamps(frame.tested, frame.view.test), frame.view.test, frame.tested)
    table = table.assign(system=table["system"].map(short_names(frame.tested)))
    st.dataframe(
        table, hide_index=True, placeholder="–", column_config=_OUTPUTS, key="outputs", alt="What each system wrote"
    )


def show_findings(frame: Frame) -> None:
    """Table of the test set's suspicious lines, by kind; a click on a row selects its sentence."""
    table = _findings(stamps(frame.tested, frame.view.test), frame.view.test, frame.tested)
    if table.empty:
        st.text(
            "No line of source, references and translations is empty, oddly written or oddly long, and none copies its "
            "source. Lines that are repeated are no finding: the tables above count them."
        )
        return
    table = table.assign(side=table["side"].replace(short_names(frame.tested)))
    counts = table["finding"].value_counts()
    kinds = st.pills(
        "Findings",
        list(counts.index),
        format_func=lambda kind: f"{kind} ({counts[kind]})",
        selection_mode="multi",
        default=list(counts.index),
        key="findings",
    )
    shown = table[table["finding"].isin(kinds)].head(MOST_LINES)
    numbers = shown["sentence"].tolist()
    st.dataframe(
        shown,
        hide_index=True,
        placeholder="–",
        column_config=_FINDINGS,
        height=300 if len(shown) > 7 else "content",
        key="odd-lines",
        on_select=lambda: look_at("odd-lines", numbers),
        selection_mode="single-row",
        alt="Data issues",
    )
    count = int(table["finding"].isin(kinds).sum())
    limit_text = f", the first {MOST_LINES} shown" if count > MOST_LINES else ""
    st.caption(f"{count} findings{limit_text}; select a row to look at its sentence.")


def show_documents(frame: Frame, metric: str, counting: Counting) -> None:
    """Table of scores by document, one column for each run; a click on a row selects its first sentence."""
    test = frame.view.test
    short = short_names(frame.tested)
    names = {
        name: name if short_name in ("document", "n") else short_name for name, short_name in short.items()
    }  # columns of the table
    table = _documents(stamps(frame.tested, test), test, metric, counting, frame.tested).rename(columns=names)
    documents = frame.tested[0].translations(test).test_set.documents or []
    firsts = [documents.index(document) for document in table["document"]]
    columns = {"document": "Document", "n": Number("Sentences")}
    scores = {name: Number(name, format="%.1f") for name in names.values()}
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        column_config={**columns, **scores},
        height=400 if len(table) > 10 else "content",
        key="documents",
        on_select=lambda: look_at("documents", firsts),
        selection_mode="single-row",
        alt=f"{METRIC_NAMES[metric]} of each document",
    )
    st.caption(f"{METRIC_NAMES[metric]} of {len(table)} documents; select a row to look at its first sentence.")
