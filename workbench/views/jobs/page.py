"""Jobs: commands that run in the background, how far they are, what they said, and what became of them."""

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states
from workbench.jobs import queue
from workbench.store import read_only
from workbench.views.jobs import table

here = frame.current()
together = "One runs" if queue.at_once() == 1 else f"{queue.at_once()} run"
frame.heading(
    "Jobs",
    f"Commands that were started on a page. {together} at a time, the others wait for their turn; all go on when the "
    "page is reloaded or the app is closed. Select a row to read its log.",
)
if read_only.active():
    empty_states.empty_state(read_only.WHY)
    st.stop()
scored = ("evaluate", *(run.reference for run in here.tested), "--test", here.view.test)
table.show(here.root, scored if here.tested else ("demo", "--runs", str(here.root)))
