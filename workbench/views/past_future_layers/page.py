"""Page Content states: states of PAST and FUTURE layers along a sentence and over a test set; maps of coverage.

Separate from the page Past and future, which shows a mass of each source word: these layers have none, and no run has
both mechanisms.
"""

import streamlit as st

from workbench.app.components import empty_states, page_sections
from workbench.app.frame import heading
from workbench.views.past_future_layers import sections
from workbench.views.past_future_layers.measure import layered, sides_of

PARTS = {"sentence": "One sentence", "corpus": "Test set", "coverage": "Coverage"}
SECTIONS = {
    "sentence": sections.sentence,
    "corpus": sections.corpus,
    "coverage": sections.coverage,
}

heading(
    "Content states",
    "What recurrent PAST and FUTURE layers hold as words are translated (Zheng 2018), and how far each source word is "
    "covered (Tu 2016).",
)
frame = empty_states.require_runs()
part = page_sections.choose(st, PARTS, "content")
if part == "coverage":
    compatible_runs = layered(frame.tested)
else:
    frame, compatible_runs = page_sections.compatible(
        frame, "has PAST or FUTURE layers", lambda run: bool(sides_of(run)), "pfrnn-loss",
        settings="--init-from RNNSEARCH_RUN",
        reason="They hardly train from scratch, so a run begins from a trained run of rnnsearch (--init-from).",
    )  # fmt: skip
SECTIONS[part](frame, compatible_runs)
if part != "coverage":
    page_sections.left_out(frame, compatible_runs, "PAST and FUTURE layers")
