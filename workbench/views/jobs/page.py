"""Page Jobs: background commands with state, progress and log."""

import streamlit as st

from workbench.app.components import empty_states
from workbench.app.frame import current, heading
from workbench.jobs import allowed_commands, queue
from workbench.store import read_only
from workbench.views.jobs import table

frame = current()
together = "One runs" if queue.parallel_jobs() == 1 else f"{queue.parallel_jobs()} run"
heading(
    "Jobs",
    f"Commands that were started on a page. {together} at a time, the others wait for their turn; all go on when the "
    "page is reloaded or the app is closed. Select a row to read its log.",
)
if read_only.active():
    empty_states.empty_state(read_only.WHY)
    st.stop()
scored = ("evaluate", *(run.argument for run in frame.tested), "--test", frame.view.test)
begins = frame.tested and allowed_commands.may_start(scored, frame.root)  # not with the exhibits, which lie elsewhere
table.show(frame.root, scored if begins else ("demo", "--runs", str(frame.root)))
