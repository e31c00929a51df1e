"""Content states: what PAST and FUTURE layers do along a sentence and over a test set; maps of coverage.

A page of its own: Past and future shows a mass for each source word, which these layers do not have, and the runs that
have the one never have the other.
"""

import shlex

import streamlit as st

from workbench import drawing, frame
from workbench.content_states import layered
from workbench.widgets import content_sections

PARTS = {"sentence": "One sentence", "corpus": "Test set", "coverage": "Coverage"}
SECTIONS = {
    "sentence": content_sections.sentence,
    "corpus": content_sections.corpus,
    "coverage": content_sections.coverage,
}

frame.heading(
    "Content states",
    "What recurrent PAST and FUTURE layers hold as words are translated (Zheng 2018), and how far each source word is "
    "covered (Tu 2016).",
)
here = frame.needs_runs()
able = layered(here.tested)
part = st.segmented_control(
    "Show", list(PARTS), format_func=PARTS.__getitem__, default="sentence", required=True, key="content",
    bind="query-params",
)  # fmt: skip
if part != "coverage" and not able:
    frame.empty(
        "None of the chosen runs has PAST or FUTURE layers. Choose one, add one to the demo, or train one on the data "
        "of a run that is there:",
        f"workbench demo pfrnn-loss --runs {shlex.quote(str(here.root))}\n"
        f"workbench train pfrnn-loss --data DATA --out {shlex.quote(str(here.root))}/pfrnn-loss",
    )
    st.stop()
SECTIONS[part](here, able)
names = drawing.short_names(here.tested)
others = [names[run.name] for run in here.tested if run not in able]
if others and part != "coverage":
    st.caption(frame.as_typed(f"Without PAST and FUTURE layers: {', '.join(others)}."))
