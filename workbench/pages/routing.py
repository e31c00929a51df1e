"""Routing: which layer sends how much to which capsule, in a sentence, over a test set, over training; ablations."""

import shlex

import streamlit as st

from workbench import drawing, frame
from workbench.routing import routed
from workbench.widgets import ablation_section, routing_sections

SIDES = {"encoder": "Encoder", "decoder": "Decoder"}
PARTS = {
    "sentence": "One sentence",
    "corpus": "Test set",
    "learned": "What is learned",
    "health": "Over training",
    "ablation": "Ablations",
}
SECTIONS = {
    "sentence": routing_sections.sentence,
    "corpus": routing_sections.corpus,
    "learned": routing_sections.learned,
    "health": routing_sections.health,
}

frame.heading("Routing", "How the layers of a stack agree, iteration by iteration, on what leaves it (Dou 2019).")
here = frame.needs_runs()
left, right = st.columns([5, 2], vertical_alignment="bottom")
part = left.segmented_control(
    "Show", list(PARTS), format_func=PARTS.__getitem__, default="sentence", required=True, key="routing",
    bind="query-params",
)  # fmt: skip
if part == "ablation":
    ablation_section.ablations(here)
    st.stop()
side = right.segmented_control(
    "Stack", list(SIDES), format_func=SIDES.__getitem__, default="encoder", required=True, key="side",
    bind="query-params",
)  # fmt: skip
able = [run for run in here.tested if routed(run, side)]
if not able:
    frame.empty(
        f"None of the chosen runs routes the layers of its {side}. Choose one, add one to the demo, or train one on "
        "the data of a run that is there:",
        f"workbench demo em-routing --runs {shlex.quote(str(here.root))}\n"
        "workbench train em-routing:preset=small,capsules=8 --data DATA --out "
        f"{shlex.quote(str(here.root))}/em-routing --set keep_every=100",
    )
    st.stop()
SECTIONS[part](here, able, side)
names = drawing.short_names(here.tested)
others = [names[run.name] for run in here.tested if run not in able]
if others:
    st.caption(frame.as_typed(f"Without routing of this stack: {', '.join(others)}."))
