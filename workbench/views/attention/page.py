"""Page Attention: attention of layers and heads along a translation, mean and rollout; alignment with gold links."""

import streamlit as st

from workbench.app.components import (
    empty_states,
    figure_view,
    forced_decoding_controls,
    sentence_texts,
    shadings,
)
from workbench.app.frame import escape_markdown, heading
from workbench.evaluation.gold_alignments import has_truth
from workbench.store.runs import short_names
from workbench.views.attention import controls
from workbench.views.attention.gold_links import TRUTH

heading(
    "Attention",
    "What each position attends to while a translation is forced through the runs: the same weights as in the search.",
)
frame = empty_states.require_runs()
frame, compatible_runs = forced_decoding_controls.with_models(frame)
sentence_texts.show(frame, shadings.attended(frame))
translation = forced_decoding_controls.target()
attention_options = controls.attention(compatible_runs)
names = short_names(frame.tested)
if "each" in (attention_options["layer"], attention_options["head"]):
    for tab, run in zip(
        st.tabs([escape_markdown(names[run.name]) for run in compatible_runs]), compatible_runs, strict=True
    ):
        with tab:
            figure_view.show("attention", frame.request([run], **translation, **attention_options), key=run.name)
else:
    figure_view.show("attention", frame.request(compatible_runs, **translation, **attention_options))

st.subheader("Alignment with gold links")
st.caption("Whether the source word that a word of the reference attends to most is the one it is linked with.")
gold = controls.links() or (TRUTH if has_truth(compatible_runs[0], frame.view.test) else "")
if not gold:
    empty_states.empty_state(
        "Name a file of gold alignments above, between the words of the sources and of the references."
    )
    st.stop()
alignment_options = {
    name: value for name, value in attention_options.items() if name in ("layer", "head", "limit") and value != "each"
}
figure_view.show("alignment", frame.request(compatible_runs, links=gold, **alignment_options))

st.subheader("Alignment error over the test set")
if st.toggle("Compute AER", key="error", bind="query-params", help="Forces every reference through the runs"):
    error_options = {name: value for name, value in attention_options.items() if name in ("layer", "head")}
    error_options["argmax"] = controls.argmax()
    by_threshold, by_length = st.tabs(["By threshold", "By source length"])
    with by_threshold:
        figure_view.show("alignment-error", frame.request(compatible_runs, links=gold, **error_options))
    with by_length:
        figure_view.show("alignment-error-lengths", frame.request(compatible_runs, links=gold, **error_options))
