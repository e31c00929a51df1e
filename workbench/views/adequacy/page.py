"""Adequacy: coverage, under- and over-translation of the source, by one frozen aligner."""

import streamlit as st

from analyses.word_coverage import MEASURES
from workbench.app import frame
from workbench.app.components import empty_states, figure_view
from workbench.evaluation.gold_alignments import has_truth
from workbench.views.adequacy import tables

frame.heading(
    "Adequacy",
    "Coverage, under- and over-translation of the source, by the links of one aligner for all systems.",
)
here = empty_states.require_runs()
references = len(here.tested[0].translations(here.view.test).test_set.all_references)
if not references:
    empty_states.empty_state(f"{here.view.test} has no references, and these measures need them.")
    st.stop()
towards = tables.choose_references(references)
figure_view.show("adequacy", here.request(here.tested, **towards))
if has_truth(here.tested[0], here.view.test):
    st.subheader("By the known truth")
    knowing = [run for run in here.tested if has_truth(run, here.view.test)]
    figure_view.show("true-choices", here.request(knowing))
    for measure in MEASURES:
        figure_view.show("true-adequacy", here.request(knowing, measure=measure), key=measure)
st.subheader("Sentences")
with frame.errors_as_messages():
    tables.show_sentences(here, **towards)
