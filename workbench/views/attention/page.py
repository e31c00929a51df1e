"""Attention: every layer and head along a translation, their mean and rollout, and the alignment they make."""

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, forced_decoding_controls, sentence_texts
from workbench.store.runs import short_names
from workbench.views.attention import controls
from workbench.views.attention.alignment_error_figures import TRUTH, has_truth

frame.heading(
    "Attention",
    "What each position attends to while a translation is forced through the runs: the same weights as in the search.",
)
here = empty_states.require_runs()
sentence_texts.show(here)
able = forced_decoding_controls.with_models(here)
translation = forced_decoding_controls.target()
chosen = controls.attention(able)
names = short_names(here.tested)
if "each" in (chosen["layer"], chosen["head"]):
    for tab, run in zip(st.tabs([frame.escape_markdown(names[run.name]) for run in able]), able, strict=True):
        with tab:
            figure_view.show("attention", here.request([run], **translation, **chosen), key=run.name)
else:
    figure_view.show("attention", here.request(able, **translation, **chosen))

st.subheader("Alignment")
links = controls.links()
single = {name: value for name, value in chosen.items() if name in ("layer", "head", "limit") and value != "each"}
if links:
    figure_view.show("alignment", here.request(able, links=links, **single))
else:
    figure_view.show("alignment", here.request(able, **translation, **single))

st.subheader("Alignment error over the test set")
gold = links or (TRUTH if has_truth(able[0], here.view.test) else "")
if not gold:
    empty_states.empty_state(
        "Name a file of gold alignments above, between the words of the sources and of the references."
    )
elif st.toggle("Compute AER", key="error", bind="query-params", help="Forces every reference through the runs"):
    over = {name: value for name, value in chosen.items() if name in ("layer", "head")}
    by_threshold, by_length = st.tabs(["By threshold", "By source length"])
    with by_threshold:
        figure_view.show("alignment-error", here.request(able, links=gold, **over))
    with by_length:
        figure_view.show("alignment-error-lengths", here.request(able, links=gold, **over))
