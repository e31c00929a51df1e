"""Page Beam sizes: quality and search errors by beam size."""

import shlex

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import errors_as_messages, heading
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

heading(
    "Beam sizes",
    "A wider beam finds more probable translations, not always better ones; exact search says what it still misses.",
)
frame = empty_states.require_runs()
measured = [run for run in frame.tested if measure.is_measured(run, frame.view.test)]
if not measured:
    page_sections.offer_others(
        frame, "was decoded with several beam sizes", lambda run: measure.is_measured(run, frame.view.test)
    )
waiting = [run for run in frame.tested if run not in measured and (run.trained or not measured)]
if waiting:
    empty_states.empty_state_of_runs(
        "Beam sizes are not tried yet, which takes a while:",
        waiting,
        f"workbench beam-sweep {{}} --test {shlex.quote(frame.view.test)}",
    )
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
