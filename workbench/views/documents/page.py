"""Page Documents: translations of a document side by side, with the context that each system read; scores."""

import streamlit as st

from analyses.scores import METRICS
from workbench.app.components import empty_states
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.documents import measure, tables
from workbench.views.scores import tables as score_tables
from workbench.views.test_sets import tables as testset_tables

heading(
    "Documents",
    "A document's translations side by side, with what each system read beside a sentence; scores of documents.",
)
frame = empty_states.require_runs()
test = frame.tested[0].translations(frame.view.test).test_set
if test.documents is None:
    empty_states.empty_state(
        f"{frame.view.test} says of no sentence which document it belongs to. Prepare text with a .docids file beside "
        "the source, and translate it again."
    )
    st.stop()
with errors_as_messages():
    rows_of_document = measure.documents_of(frame.tested, frame.view.test)
    document = tables.choose(rows_of_document, frame.view.sentence)
    tables.show_sentences(frame, document)
if test.references is None:
    st.stop()
st.subheader("Scores")
metric = st.selectbox("Metric", METRICS, format_func=METRIC_NAMES.__getitem__, key="metric", bind="query-params")
counting = score_tables.choose_counting(len(test.all_references))
with errors_as_messages():
    tables.show_levels(frame, metric, counting)
    testset_tables.show_documents(frame, metric, counting)
