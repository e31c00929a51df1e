"""Context: what systems make of the sentences before one: routing and attention, what it changes, pronouns, scope."""

import streamlit as st

from workbench.app.components import empty_states, page_sections
from workbench.app.frame import heading
from workbench.app.pages import PAGES
from workbench.evaluation.document_context import context_mechanisms
from workbench.views.ablation import sections as ablation_section
from workbench.views.document_context import sections

PARTS = {
    "sentence": "One sentence",
    "change": "What it changes",
    "corpus": "Test set",
    "pronouns": "Pronouns",
    "scope": "Scope and capsules",
}
SECTIONS = {
    "sentence": sections.sentence,
    "change": sections.change,
    "corpus": sections.corpus,
    "pronouns": sections.pronouns,
}

heading(
    "Context",
    "What a system makes of the sentences before the one that it translates: capsules and correlations (Yang 2019), "
    "attention (Zhang 2018, Miculicich 2018, Maruf 2019).",
)
frame = empty_states.require_runs()
part = page_sections.choose(st, PARTS, "context")
if part == "scope":
    ablation_section.ablations(frame, PAGES["context"], stacked=True)
    st.stop()
frame, compatible_runs = page_sections.compatible(
    frame, "reads the sentences before, which takes document ids", lambda run: bool(context_mechanisms(run)), "qcn-reg"
)
SECTIONS[part](frame, compatible_runs)
if part != "pronouns":
    page_sections.left_out(frame, compatible_runs, "context")
