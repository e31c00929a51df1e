"""Routing: which layer sends how much to which capsule, in a sentence, over a test set, over training; ablations."""

import streamlit as st

from workbench.app.components import empty_states, page_sections
from workbench.app.frame import heading
from workbench.app.pages import PAGES
from workbench.views.ablation import sections as ablation_section
from workbench.views.layer_routing import sections
from workbench.views.layer_routing.measure import routed

SIDES = {"encoder": "Encoder", "decoder": "Decoder"}
PARTS = {
    "sentence": "One sentence",
    "corpus": "Test set",
    "learned": "Trained vs. control",
    "health": "Over training",
    "ablation": "Ablations",
}
SECTIONS = {
    "sentence": sections.sentence,
    "corpus": sections.corpus,
    "learned": sections.learned,
    "health": sections.health,
}

heading("Routing", "How the layers of a stack agree, iteration by iteration, on what leaves it (Dou 2019).")
frame = empty_states.require_runs()
left, right = st.columns([5, 2], vertical_alignment="bottom")
page_sections.read_old_label("routing", {"What is learned": "learned"})
part = page_sections.choose(left, PARTS, "routing")
if part == "ablation":
    ablation_section.ablations(frame, PAGES["routing"])
    st.stop()
side = right.segmented_control(
    "Stack", list(SIDES), format_func=SIDES.__getitem__, default="encoder", required=True, key="side",
    bind="query-params",
)  # fmt: skip
frame, compatible_runs = page_sections.compatible(
    frame, f"routes the layers of its {side}", lambda run: routed(run, side), "em-routing",
    ":preset=small,capsules=8", "--config keep_every=100",
)  # fmt: skip
SECTIONS[part](frame, compatible_runs, side)
page_sections.left_out(frame, compatible_runs, "routing of this stack")
