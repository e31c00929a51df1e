"""Beam sizes: what translations become as the beam widens, and how often the search misses the best output."""

import shlex

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, page_sections
from workbench.views.beam_size import measure
from workbench.views.beam_size.figures import sizes_table

Number = st.column_config.NumberColumn
COLUMNS = {
    "system": "System",
    "size": Number("Beam"),
    "bleu": Number("BLEU", format="%.2f"),
    "length_ratio": Number("Length ratio", format="%.3f"),
    "empty": Number("Empty outputs"),
    "errors": Number("Search errors"),
    "error_percent": Number("Search errors (%)", format="%.1f"),
    "seconds": Number("Seconds", format="%.1f", help="For the whole test set, on the machine that measured"),
}

frame.heading(
    "Beam sizes",
    "A wider beam finds more probable translations, not always better ones; exact search says what it still misses.",
)
here = empty_states.require_runs()
measured = [run for run in here.tested if measure.is_measured(run, here.view.test)]
if not measured:
    page_sections.offer_others(
        here, "was decoded with several beam sizes", lambda run: measure.is_measured(run, here.view.test)
    )
waiting = [run for run in here.tested if run not in measured and (run.trained or not measured)]
if waiting:
    empty_states.empty_state_of_runs(
        "Beam sizes are not tried yet, which takes a while:",
        waiting,
        f"workbench beam-sweep {{}} --test {shlex.quote(here.view.test)}",
    )
if not measured:
    st.stop()
figure_view.show("beam-sizes", here.request(measured))
with frame.errors_as_messages():
    st.dataframe(
        sizes_table(here.request(measured)),
        hide_index=True,
        placeholder="–",
        width="content",
        key="sizes",
        column_order=list(COLUMNS),
        column_config=COLUMNS,
        alt="Quality and search errors by beam size",
    )
