"""Selection of a node in a beam tree, with a link that forces its prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from analyses.attention import text_of
from workbench.app.frame import page_file
from workbench.app.url_state import PREFIX
from workbench.plotting.grammar import Figure, Points

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def nodes(figure: Figure) -> pd.DataFrame:
    """Drawn nodes of a beam tree: curve and point (Plotly's indices), prefix (text), step."""
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
    table = (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["curve", "point", "prefix", "step"])
    )
    return table[table["prefix"] != ""]


def from_node(figure: Figure, points: Sequence[Mapping[str, int]], key: str) -> None:
    """Show the prefix of the clicked or selected node, and a link to the page Translate that forces it."""
    prefix, place = choose(figure, points, key)
    if prefix is None:
        return
    # Shared state is added by Streamlit: here it would repeat the runs in the URL.
    place.page_link(
        page_file("translate"), label="Translate from here", icon=":material/call_split:", query_params={PREFIX: prefix}
    )


def choose(figure: Figure, points: Sequence[Mapping[str, int]], key: str) -> tuple[str | None, DeltaGenerator]:
    """The prefix of the clicked or selected node (None without one), and the place beside it for what uses it.

    points: points selected by a click on the chart.
    """
    drawn_nodes = nodes(figure)
    options = list(dict.fromkeys(drawn_nodes.sort_values("step", kind="stable")["prefix"]))
    node_key, clicked_key = f"node-{key}", f"_clicked-{key}"
    selected_points = {(int(point["curve_number"]), int(point["point_index"])) for point in points}
    clicked = next((row.prefix for row in drawn_nodes.itertuples() if (row.curve, row.point) in selected_points), None)
    if clicked is not None and st.session_state.get(clicked_key) != clicked:
        st.session_state[node_key] = clicked
    st.session_state[clicked_key] = clicked
    if st.session_state.get(node_key) not in options:
        st.session_state[node_key] = None
    left, right = st.columns([6, 2], vertical_alignment="bottom")
    prefix = left.selectbox(
        "A node: click on one in the tree, or choose its prefix", options, index=None, key=node_key,
        placeholder="what the hypothesis says up to the node",
    )  # fmt: skip
    if prefix is not None:
        st.text(f"Prefix: {prefix}")
    return prefix, right


def _text(prefix: object) -> str:
    """Prefix of a node as text; differences of trees have their pieces joined with blanks already."""
    return text_of(prefix.split(" ") if isinstance(prefix, str) else list(prefix))  # type: ignore[call-overload]
