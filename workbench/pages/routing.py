"""Routing: in each iteration, which layer sends how much to which capsule, and how evenly."""

import streamlit as st

from workbench import drawing, frame
from workbench.drawing.routing import routed
from workbench.widgets import figure_view, inside_controls, sentence_texts

SIDES = {"encoder": "Encoder", "decoder": "Decoder"}
ORDERS = {"sorted": "By layer", "natural": "By number"}

frame.heading("Routing", "How the layers of a stack agree on what leaves it: assignments of every routing iteration.")
here = frame.needs_runs()
sentence_texts.show(here)
columns = st.columns([3, 3, 3, 2], vertical_alignment="bottom")
side = columns[0].segmented_control(
    "Stack", list(SIDES), format_func=SIDES.__getitem__, default="encoder", required=True, key="side",
    bind="query-params",
)  # fmt: skip
able = [run for run in here.tested if routed(run, side)]
if not able:
    frame.empty(
        f"None of the chosen runs routes the layers of its {side}. Train one, on the data of a run that is there:",
        f"workbench train em-routing:preset=small,capsules=8 --data DATA --out {here.root}/em-routing",
    )
    st.stop()
order = columns[1].segmented_control(
    "Capsules", list(ORDERS), format_func=ORDERS.__getitem__, default="sorted", required=True, key="order",
    bind="query-params",
)  # fmt: skip
translation = inside_controls.target()
with frame.sentences_for_errors():
    tokens = inside_controls.tokens(able[0], here, translation, side)
    position = columns[2].selectbox(
        "Position", ["mean", *map(str, range(len(tokens)))],
        format_func=lambda place: "mean over all" if place == "mean" else f"{place}  {tokens[int(place)]}",
        key="position", bind="query-params",
    )  # fmt: skip
    difference = columns[3].toggle(
        "Growth", False, key="growth", bind="query-params", help="Since the iteration before"
    )
    shown = {**translation, **({"side": side} if side != "encoder" else {})}
    chosen = {"position": position} if position != "mean" else {}
    chosen |= {"order": order} if order != "sorted" else {}
    figure_view.show(
        "routing-maps", here.request(able, **shown, **chosen, **({"difference": True} if difference else {}))
    )
    st.subheader("Entropy and diversity")
    layers = st.toggle("Each layer by itself", False, key="layers", bind="query-params")
    figure_view.show("routing-curves", here.request(able, **shown, **({"layers": True} if layers else {})))
    names = drawing.short_names(here.tested)
    others = [names[run.name] for run in here.tested if run not in able]
    if others:
        st.caption(frame.as_typed(f"Without routing of this stack: {', '.join(others)}."))
