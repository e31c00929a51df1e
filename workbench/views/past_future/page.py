"""Past and future: which source words are translated at each step, in a sentence, a test set, against the truth."""

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, page_sections
from workbench.views.ablation import sections as ablation_section
from workbench.views.past_future import sections
from workbench.views.past_future.measure import guided, separates

PARTS = {
    "sentence": "One sentence",
    "corpus": "Test set",
    "truth": "Against the truth",
    "left": "Under-translation",
    "lengths": "By length",
    "ablation": "Ablations",
}
SECTIONS = {
    "sentence": sections.sentence,
    "corpus": sections.corpus,
    "left": sections.left_over,
    "lengths": sections.lengths,
}

frame.heading(
    "Past and future",
    "Which source words a system takes for translated (PAST), for still to come (FUTURE) or for neither (REDUNDANT), "
    "step by step (Zheng 2019).",
)
here = empty_states.require_runs()
part = page_sections.choose(st, PARTS, "past-future")
if part == "ablation":
    ablation_section.ablations(here)
    st.stop()
if part == "truth":
    sections.truth(here)
    st.stop()
able = guided(here.tested)
if not able:
    page_sections.none_able(here, "separates PAST and FUTURE", separates, "gdr-bow-bca")
    st.stop()
SECTIONS[part](here, able)
if part != "lengths":
    page_sections.left_out(here, able, "PAST and FUTURE")
