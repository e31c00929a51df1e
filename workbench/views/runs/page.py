"""Page Runs: all runs below the runs folder with their state, and the choice of runs for all pages."""

import shlex

import streamlit as st

from workbench.app.components import empty_states
from workbench.app.frame import current, heading
from workbench.views.runs import import_form, open_form, table

heading(
    "Runs",
    "Select up to six rows; the other pages show these runs. A run keeps its color, dash and marker on all pages.",
)
frame = current()
with st.container(horizontal=True):
    import_form.show(frame)
    open_form.show(frame)
open_form.show_opened(frame)
if frame.runs:
    table.show(frame)
else:
    empty_states.empty_state(
        f"There is no run below {frame.root} yet. Build the demo on the page Start, or on the command line:",
        shlex.join(["workbench", "demo", "--runs", str(frame.root)]),
    )
