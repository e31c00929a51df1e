"""Page Test sets: the runs' test sets, issues of their lines, and scores by document."""

import streamlit as st

from analyses.scores import METRICS
from workbench.app.components import empty_states
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.scores import tables as score_tables
from workbench.views.test_sets import tables

heading("Test sets", "What the runs were tested on, issues of its lines, and the score of each document.")
frame = empty_states.require_runs()
with errors_as_messages():
    tables.show_sets(frame)
    tables.show_corpora(frame)
    st.subheader("Outputs of the systems")
    tables.show_outputs(frame)
    st.subheader("Data issues")
    tables.show_findings(frame)

st.subheader("Documents")
test = frame.tested[0].translations(frame.view.test).test_set
if test.documents is None or test.references is None:
    empty_states.empty_state(
        f"{frame.view.test} has no {'document ids' if test.documents is None else 'references'}: no document can be "
        "scored."
    )
    st.stop()
metric = st.selectbox("Metric", METRICS, format_func=METRIC_NAMES.__getitem__, key="metric", bind="query-params")
counting = score_tables.choose_counting(len(test.all_references))
with errors_as_messages():
    tables.show_documents(frame, metric, counting)
