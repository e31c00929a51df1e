"""A node chosen in a beam tree, and the link that forces its prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from analyses.attention import text_of
from workbench.app.frame import page_file
from workbench.app.url_state import PREFIX
from workbench.plotting.grammar import Figure, Points


def nodes(figure: Figure) -> pd.DataFrame:
    """The nodes of a beam tree as drawn: curve and point (as Plotly counts them), prefix (text), step."""
    marks = [mark for panel in figure.panels for mark in panel.marks]
    tables = [
        pd.DataFrame(
            {
                "curve": curve,
                "point": range(len(mark.table)),
                "prefix": [_text(prefix) for prefix in mark.table["prefix"]],
                "step": mark.table["step"].to_numpy(),
            }
        )
        for curve, mark in enumerate(marks)
        if isinstance(mark, Points) and "prefix" in mark.table
    ]
    found = (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["curve", "point", "prefix", "step"])
    )
    return found[found["prefix"] != ""]


def from_node(figure: Figure, points: Sequence[Mapping[str, int]], key: str, **query: str) -> None:
    """The prefix of the node that was clicked, or of one that is chosen from a list, and the way to the page What-if.

    points: what a click on the chart selected; query: more of the state that the page is to begin with.
    """
    known = nodes(figure)
    options = list(dict.fromkeys(known.sort_values("step", kind="stable")["prefix"]))
    node, seen = f"node-{key}", f"_clicked-{key}"
    places = {(int(point["curve_number"]), int(point["point_index"])) for point in points}
    clicked = next((row.prefix for row in known.itertuples() if (row.curve, row.point) in places), None)
    if clicked is not None and st.session_state.get(seen) != clicked:
        st.session_state[node] = clicked
    st.session_state[seen] = clicked
    if st.session_state.get(node) not in options:
        st.session_state[node] = None
    left, right = st.columns([6, 2], vertical_alignment="bottom")
    prefix = left.selectbox(
        "A node: click on one in the tree, or choose its prefix", options, index=None, key=node,
        placeholder="what the hypothesis says up to the node",
    )  # fmt: skip
    if prefix is None:
        return
    state = {**query, PREFIX: prefix}  # all pages share the rest; given here too, Streamlit would name the runs twice
    right.page_link(page_file("what_if"), label="What if from here", icon=":material/call_split:", query_params=state)
    st.text(f"Prefix: {prefix}")


def _text(prefix: object) -> str:
    """A node's prefix as text; a difference of trees has joined its pieces with blanks already."""
    return text_of(prefix.split(" ") if isinstance(prefix, str) else list(prefix))  # type: ignore[call-overload]
