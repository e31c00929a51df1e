"""Page Training curves: logged quantities of training over updates, epochs, tokens or seconds."""

import streamlit as st

from workbench.app.components import empty_states, figure_view
from workbench.app.frame import heading
from workbench.views.training_curves.measure import logged_names

PLACES = {"step": "updates", "epoch": "epochs", "tokens": "target tokens", "seconds": "seconds"}

heading("Training curves", "What training logged; losses are nats per target token.")
frame = empty_states.require_runs(translated=False)
logged = logged_names(frame.chosen)
if not logged:
    empty_states.empty_state_of_runs(
        "These runs have logged nothing yet. Train them:", frame.chosen, "workbench resume {}"
    )
    st.stop()

names = st.multiselect(
    "Quantities",
    logged,
    default=logged[:2],
    format_func=lambda name: name.replace("_", " "),
    key="quantities",
    bind="query-params",
)
columns = st.columns([2, 2, 3])
x_axis = columns[0].selectbox(
    "Against", list(PLACES), format_func=PLACES.__getitem__, key="against", bind="query-params"
)
smoothing = columns[1].slider(
    "Smoothing",
    0.0,
    0.95,
    0.0,
    0.05,
    key="smoothing",
    bind="query-params",
    help="Weight of the past in an exponential mean; 0 draws what was logged",
)
logarithmic = columns[2].multiselect(
    "Logarithmic", names, format_func=lambda name: name.replace("_", " "), key="log", bind="query-params"
)
if names:
    figure_view.show(
        "training-curves", frame.request(frame.chosen, names=names, x=x_axis, smoothing=smoothing, log_y=logarithmic)
    )
else:
    empty_states.empty_state("Choose a quantity above.")
