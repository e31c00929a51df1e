"""Past and future: which source words are translated at each step, in a sentence, a test set, against the truth."""

import shlex

import streamlit as st

from workbench import drawing, frame
from workbench.past_future import guided
from workbench.widgets import ablation_section, past_future_sections

PARTS = {
    "sentence": "One sentence",
    "corpus": "Test set",
    "truth": "Against the truth",
    "left": "Under-translation",
    "lengths": "By length",
    "ablation": "Ablations",
}
SECTIONS = {
    "sentence": past_future_sections.sentence,
    "corpus": past_future_sections.corpus,
    "left": past_future_sections.left_over,
    "lengths": past_future_sections.lengths,
}

frame.heading(
    "Past and future",
    "Which source words a system takes for translated (PAST), for still to come (FUTURE) or for neither (REDUNDANT), "
    "step by step (Zheng 2019).",
)
here = frame.needs_runs()
part = st.segmented_control(
    "Show", list(PARTS), format_func=PARTS.__getitem__, default="sentence", required=True, key="past-future",
    bind="query-params",
)  # fmt: skip
if part == "ablation":
    ablation_section.ablations(here)
    st.stop()
able = guided(here.tested)
if part == "truth":
    past_future_sections.truth(here)
    st.stop()
if not able:
    frame.empty(
        "None of the chosen runs separates PAST and FUTURE. Choose one, add one to the demo, or train one on the data "
        "of a run that is there:",
        f"workbench demo gdr-bow-bca --runs {shlex.quote(str(here.root))}\n"
        f"workbench train gdr-bow-bca --data DATA --out {shlex.quote(str(here.root))}/gdr-bow-bca",
    )
    st.stop()
SECTIONS[part](here, able)
names = drawing.short_names(here.tested)
others = [names[run.name] for run in here.tested if run not in able]
if others and part != "lengths":
    st.caption(frame.as_typed(f"Without PAST and FUTURE: {', '.join(others)}."))
