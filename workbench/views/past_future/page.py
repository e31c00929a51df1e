"""Past and future: which source words are translated at each step, in a sentence, a test set, against the truth."""

import streamlit as st

from workbench.app.components import empty_states, page_sections
from workbench.app.frame import heading
from workbench.app.pages import PAGES
from workbench.views.ablation import sections as ablation_section
from workbench.views.past_future import sections
from workbench.views.past_future.measure import separates

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
    "left": sections.under_translation,
    "lengths": sections.lengths,
}

heading(
    "Past and future",
    "Which source words a system takes for translated (PAST), for still to come (FUTURE) or for neither (REDUNDANT), "
    "step by step (Zheng 2019).",
)
frame = empty_states.require_runs()
part = page_sections.choose(st, PARTS, "past-future")
if part == "ablation":
    ablation_section.ablations(frame, PAGES["past_future"])
    st.stop()
if part == "truth":
    sections.truth(frame)
    st.stop()
frame, compatible_runs = page_sections.compatible(frame, "separates PAST and FUTURE", separates, "gdr-bow-bca")
SECTIONS[part](frame, compatible_runs)
if part != "lengths":
    page_sections.left_out(frame, compatible_runs, "PAST and FUTURE")
