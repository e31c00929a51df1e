"""Documents: a document's translations side by side, sentence by sentence, with what each system read beside them."""

import streamlit as st

from analyses.scores import METRICS
from workbench.app import frame
from workbench.app.components import empty_states
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.documents import measure, tables
from workbench.views.scores import tables as score_tables
from workbench.views.test_sets import tables as testset_tables

frame.heading(
    "Documents",
    "A document's translations side by side, with what each system read beside a sentence; scores of documents.",
)
here = empty_states.require_runs()
test = here.tested[0].translations(here.view.test).test_set
if test.documents is None:
    empty_states.empty_state(
        f"{here.view.test} says of no sentence which document it belongs to. Prepare text with a .docids file beside "
        "the source, and translate it again."
    )
    st.stop()
with frame.errors_as_messages():
    known = measure.documents_of(here.tested, here.view.test)
    document = tables.choose(known, here.view.sentence)
    tables.show_sentences(here, document)
if test.references is None:
    st.stop()
st.subheader("Scores")
metric = st.selectbox("Metric", METRICS, format_func=METRIC_NAMES.__getitem__, key="metric", bind="query-params")
counting = score_tables.choose_counting(len(test.all_references))
with frame.errors_as_messages():
    tables.show_levels(here, metric, counting)
    testset_tables.show_documents(here, metric, counting)
