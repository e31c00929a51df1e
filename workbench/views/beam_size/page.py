"""Page Beam sizes: quality and search errors by beam size."""

import shlex

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import errors_as_messages, heading
from workbench.store.runs import Run
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


def _ask_for(runs: list[Run], test: str) -> None:
    """Say how to measure runs."""
    if runs:
        message, command = "Beam sizes are not tried yet, which takes a while:", "workbench beam-sweep {} --test "
        empty_states.empty_state_of_runs(message, runs, command + shlex.quote(test))


heading(
    "Beam sizes",
    "A wider beam finds more probable translations, not always better ones; exact search says what it still misses.",
)
frame = empty_states.require_runs()
test = frame.view.test
measured = [run for run in frame.tested if measure.is_measured(run, test)]
waiting = [run for run in frame.tested if run not in measured and (run.trained or not measured)]
if not measured:
    _ask_for(waiting, test)
    decoded = "was decoded with several beam sizes"
    frame = page_sections.any_compatible(frame, decoded, lambda run: measure.is_measured(run, test))
    measured = [run for run in frame.tested if measure.is_measured(run, test)]
if not measured:
    st.stop()
figure_view.show("beam-sizes", frame.request(measured))
with errors_as_messages():
    st.dataframe(
        sizes_table(frame.request(measured)),
        hide_index=True,
        placeholder="–",
        width="content",
        key="sizes",
        column_order=list(COLUMNS),
        column_config=COLUMNS,
        alt="Quality and search errors by beam size",
    )
_ask_for([run for run in waiting if run in frame.tested], test)
