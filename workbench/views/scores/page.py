"""Scores: systems with intervals and signatures, tested against the baseline, as dots and as a LaTeX table."""

from dataclasses import asdict

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, figure_view
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.scores import tables

frame.heading("Scores", "Corpus scores with 95% bootstrap intervals; every number carries its sacreBLEU signature.")
here = empty_states.require_runs()

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

references = len(here.tested[0].translations(here.view.test).test_set.all_references)
counting = tables.choose_counting(references)
figure_view.show("scores", here.request(metrics=metrics, **asdict(counting)))
with frame.errors_as_messages():
    tables.show(here, metrics, method, counting)
    tables.show_by_test(here, metrics, method, counting)
