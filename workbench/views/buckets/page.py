"""Page Buckets: scores, differences to the baseline and output lengths by length, word frequency, or label."""

import streamlit as st

from analyses.buckets import FORMER_PRESETS
from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import heading
from workbench.evaluation import bucketed_scores
from workbench.evaluation.word_frequencies import COUNTED
from workbench.store import segment_annotations

SCHEMES = {  # the first is the default: buckets of about as many sentences, however long those of a test set are
    "quantiles:4": "4 quantiles",
    "quantiles:6": "6 quantiles",
    "tens": "steps of ten to 50",
    "short": "steps of five to 25",
    "width:5": "width 5",
    "width:10": "width 10",
}
FREQUENCY_SCHEMES = {"frequency": "0, 1–4, 5–9, 10–99, …", "quantiles:4": "4 quantiles", "quantiles:6": "6 quantiles"}
MEASURES = {
    "source": "source length",
    "reference": "reference length",
    "output": "output length of the baseline",
    "source-frequency": "frequency of the rarest source word",
    "reference-frequency": "frequency of the rarest reference word",
    "label": "label or document",
}
FIGURES = {
    "length-scores": "Scores",
    "length-differences": "Difference to the baseline",
    "output-lengths": "Output length",
}

heading("Buckets", "How scores and output lengths change with length, with the frequency of words, or by label.")
frame = empty_states.require_runs()

columns = st.columns(3)
metric = columns[0].selectbox(
    "Metric",
    list(bucketed_scores.METRIC_NAMES),
    format_func=bucketed_scores.METRIC_NAMES.__getitem__,
    key="metric",
    bind="query-params",
)
measure = columns[1].selectbox(
    "Group by", list(MEASURES), format_func=MEASURES.__getitem__, key="measure", bind="query-params"
)
options = {"metric": metric, "measure": measure}
if measure == "label":
    first = frame.tested[0].translations(frame.view.test)
    choices = segment_annotations.columns(frame.root, frame.view.test, len(first))
    available = [*choices, *([bucketed_scores.DOCUMENT] if first.test_set.documents is not None else [])]
    if not available:
        empty_states.empty_state(
            "This test set has no labels and no documents yet: add a file with labels on the page Sentences."
        )
        st.stop()
    name = columns[2].selectbox("Label", available, key="label", bind="query-params")
    options |= (
        {"labels": str(choices[name]), "column": name} if name in choices else {"labels": bucketed_scores.DOCUMENT}
    )
else:
    schemes = FREQUENCY_SCHEMES if measure in bucketed_scores.FREQUENCIES else SCHEMES
    key = "steps" if measure in bucketed_scores.FREQUENCIES else "scheme"
    page_sections.read_old_label(key, FORMER_PRESETS)
    options["scheme"] = columns[2].selectbox(
        "Buckets", list(schemes), format_func=schemes.__getitem__, key=key, bind="query-params",
        help="Quantiles hold about as many sentences each; steps of ten to 50 are those of Zheng 2019",
    )  # fmt: skip
if measure in bucketed_scores.FREQUENCIES:
    options["counts"] = columns[2].selectbox(
        "Frequencies counted in", list(COUNTED), format_func=COUNTED.__getitem__, key="counts", bind="query-params"
    )
request = frame.request(**options)

shown = st.segmented_control(
    "Show", list(FIGURES), format_func=FIGURES.__getitem__, default="length-scores", required=True, key="figure",
    bind="query-params",
)  # fmt: skip
if shown == "length-differences" and len(request.runs) < 2:
    empty_states.empty_state(
        "A difference needs a second run that has translated this test set: choose one in the sidebar."
    )
else:
    figure_view.show(shown, request)
