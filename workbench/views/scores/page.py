"""Page Scores: scores with intervals and signatures, and paired tests against the baseline."""

from dataclasses import asdict

import streamlit as st

from workbench.app.components import empty_states, figure_view
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.scores import tables

heading("Scores", "Corpus scores with 95% bootstrap intervals; every number carries its sacreBLEU signature.")
frame = empty_states.require_runs()

left, right = st.columns(2)
metrics = left.pills(
    "Metrics",
    list(METRIC_NAMES),
    format_func=METRIC_NAMES.__getitem__,
    selection_mode="multi",
    default=["bleu", "chrf"],
    key="metrics",
    bind="query-params",
)
method = right.segmented_control(
    "Paired test against the baseline",
    list(tables.METHOD_NAMES),
    format_func=tables.METHOD_NAMES.__getitem__,
    default="bootstrap",
    required=True,
    key="method",
    bind="query-params",
)
if not metrics:
    empty_states.empty_state("Choose a metric above.")
    st.stop()

references = len(frame.tested[0].translations(frame.view.test).test_set.all_references)
counting = tables.choose_counting(references)
figure_view.show("scores", frame.request(metrics=metrics, **asdict(counting)))
with errors_as_messages():
    tables.show(frame, metrics, method, counting)
    tables.show_pairs(frame, metrics, method, counting)
    tables.show_by_test(frame, metrics, method, counting)
