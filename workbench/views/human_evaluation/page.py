"""Page Human rating: blind ratings of translations by several raters; results only on request."""

import streamlit as st

from workbench.app import sidebar
from workbench.app.components import empty_states
from workbench.app.frame import current, errors_as_messages, heading
from workbench.store import rating_studies as rating
from workbench.store import read_only
from workbench.views.human_evaluation import form, results

heading(
    "Human rating",
    "Quality from 1 to 5 and the source words that are left out (under-translated) or translated too often "
    "(over-translated), rated without knowing the system.",
)
frame = current() if sidebar.rates_blind() and current().known else empty_states.require_runs()
first = "Rate" if rating.studies(frame.root) else "New study"
part = st.segmented_control(
    "Part", ["Rate", *sidebar.NAMING_RUNS], default=first, required=True, key="rating", bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip
with errors_as_messages():
    if read_only.active() and part != "Results":
        empty_states.empty_state(read_only.WHY)
        st.stop()
    if part == "New study":
        results.new_study(frame)
        st.stop()
    study = rating.open_study(frame.root, results.choose_study(frame))
    if part == "Results":
        results.show(frame, study)
        st.stop()
    rater = st.text_input(
        "Your name", key="rater", bind="query-params", placeholder="letters, digits, + and -",
        help="Under the same name you go on where you stopped",
    ).strip()  # fmt: skip
    if rater:
        form.show(rating.enter(study, rater), rater)
    else:
        st.text("Write your name to begin.")
