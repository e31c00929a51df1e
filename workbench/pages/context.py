"""Context: what systems make of the sentences before one: routing and attention, what it changes, pronouns, scope."""

import shlex

import streamlit as st

from workbench import drawing, frame
from workbench.contexts import of_context
from workbench.widgets import ablation_section, context_sections

PARTS = {
    "sentence": "One sentence",
    "change": "What it changes",
    "corpus": "Test set",
    "pronouns": "Pronouns",
    "scope": "Scope and capsules",
}
SECTIONS = {
    "sentence": context_sections.sentence,
    "change": context_sections.change,
    "corpus": context_sections.corpus,
    "pronouns": context_sections.pronouns,
}

frame.heading(
    "Context",
    "What a system makes of the sentences before the one that it translates: capsules and correlations (Yang 2019), "
    "attention (Zhang 2018, Miculicich 2018, Maruf 2019).",
)
here = frame.needs_runs()
part = st.segmented_control(
    "Show", list(PARTS), format_func=PARTS.__getitem__, default="sentence", required=True, key="context",
    bind="query-params",
)  # fmt: skip
if part == "scope":
    ablation_section.ablations(here, stacked=True)
    st.stop()
able = of_context(here.tested)
if not able:
    frame.empty(
        "None of the chosen runs reads the sentences before. Choose one, add one to the demo, or train one on the data "
        "of a run that is there, prepared with document ids:",
        f"workbench demo qcn-reg --runs {shlex.quote(str(here.root))}\n"
        f"workbench train qcn-reg --data DATA --out {shlex.quote(str(here.root))}/qcn-reg",
    )
    st.stop()
SECTIONS[part](here, able)
names = drawing.short_names(here.tested)
others = [names[run.name] for run in here.tested if run not in able]
if others and part != "pronouns":
    st.caption(frame.as_typed(f"Without context: {', '.join(others)}."))
