"""Page Adequacy: coverage, under- and over-translation of the source, by one frozen aligner."""

import streamlit as st

from analyses.word_coverage import MEASURES
from workbench.app.components import empty_states, figure_view
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation.gold_alignments import has_truth
from workbench.views.adequacy import tables

heading(
    "Adequacy",
    "Coverage, under- and over-translation of the source, by the links of one aligner for all systems.",
)
frame = empty_states.require_runs()
references = len(frame.tested[0].translations(frame.view.test).test_set.all_references)
if not references:
    empty_states.empty_state(f"{frame.view.test} has no references, and these measures need them.")
    st.stop()
reference_options = tables.choose_references(references)
figure_view.show("adequacy", frame.request(frame.tested, **reference_options))
if has_truth(frame.tested[0], frame.view.test):
    st.subheader("By the known truth")
    with_truth = [run for run in frame.tested if has_truth(run, frame.view.test)]
    figure_view.show("true-choices", frame.request(with_truth))
    for measure in MEASURES:
        figure_view.show("true-adequacy", frame.request(with_truth, measure=measure), key=measure)
st.subheader("Sentences")
with errors_as_messages():
    tables.show_sentences(frame, **reference_options)
