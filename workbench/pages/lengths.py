"""Lengths: scores, differences to the baseline and output lengths by sentence length."""

import streamlit as st

from workbench import frame
from workbench.evaluation import METRIC_NAMES
from workbench.widgets import figure_view

SCHEMES = {
    "gdr": "steps of ten to 50",
    "short": "steps of five to 25",
    "width:5": "width 5",
    "width:10": "width 10",
    "quantiles:4": "4 quantiles",
    "quantiles:6": "6 quantiles",
}

frame.heading("Lengths", "How scores and output lengths change with the length of a sentence.")
here = frame.needs_runs()

columns = st.columns(3)
metric = columns[0].selectbox(
    "Metric",
    list(METRIC_NAMES),
    format_func=METRIC_NAMES.__getitem__,
    key="metric",
    bind="query-params",
)
scheme = columns[1].selectbox(
    "Buckets", list(SCHEMES), format_func=SCHEMES.__getitem__, key="scheme", bind="query-params"
)
measure = columns[2].selectbox("Length of", ["source", "reference"], key="measure", bind="query-params")
request = here.request(scheme=scheme, measure=measure, metric=metric)

scores, differences, lengths = st.tabs(["Scores", "Difference to the baseline", "Output length"])
with scores:
    figure_view.show("length-scores", request)
with differences:
    if len(request.runs) < 2:
        frame.empty("A difference needs a second run that has translated this test set: choose one in the sidebar.")
    else:
        figure_view.show("length-differences", request)
with lengths:
    figure_view.show("output-lengths", request)
