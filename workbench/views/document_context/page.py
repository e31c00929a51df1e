"""Context: what systems make of the sentences before one: routing and attention, what it changes, pronouns, scope."""

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, page_sections
from workbench.evaluation.document_context import context_aware_runs, context_mechanisms
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

frame.heading(
    "Context",
    "What a system makes of the sentences before the one that it translates: capsules and correlations (Yang 2019), "
    "attention (Zhang 2018, Miculicich 2018, Maruf 2019).",
)
here = empty_states.require_runs()
part = page_sections.choose(st, PARTS, "context")
if part == "scope":
    ablation_section.ablations(here, stacked=True)
    st.stop()
able = context_aware_runs(here.tested)
if not able:
    reads = "reads the sentences before, which takes document ids"
    page_sections.none_able(here, reads, lambda run: bool(context_mechanisms(run)), "qcn-reg")
    st.stop()
SECTIONS[part](here, able)
if part != "pronouns":
    page_sections.left_out(here, able, "context")
