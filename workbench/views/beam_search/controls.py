"""Controls and lists of the page Beam trees: the drawn part of a search, and candidates of only one search."""

from __future__ import annotations

from typing import Any

import streamlit as st

from workbench.app.frame import escape_markdown
from workbench.figures.options import default
from workbench.figures.request import Request
from workbench.plotting.axes import with_drawn_pieces
from workbench.views.beam_search.figures import BeamOptions, default_steps
from workbench.views.beam_search.measure import beam_difference


def options(longest: int, key: str = "") -> dict[str, Any]:
    """Controls for the window of steps, minimum token probability, maximum nodes, and pruned hypotheses."""
    columns = st.columns([2.5, 1.8, 1.8, 2.6], vertical_alignment="bottom")
    values: dict[str, Any] = {}
    if longest > 1:
        values["steps"] = list(_window(columns[0], longest, f"steps{key}"))
    values["minimum_probability"] = columns[1].select_slider(
        "Min. token probability",
        [0.0, 0.001, 0.01, 0.05, 0.1],
        default(BeamOptions, "minimum_probability"),
        key=f"probability{key}",
        bind="query-params",
    )
    values["node_cap"] = columns[2].slider(
        "Max. nodes", 50, 800, default(BeamOptions, "node_cap"), 50, key=f"nodes{key}", bind="query-params"
    )
    values["pruned"] = columns[3].toggle(
        "Show pruned hypotheses",
        default(BeamOptions, "pruned"),
        key=f"pruned{key}",
        bind="query-params",
        help="Hypotheses that the search dropped",
    )
    return values


def _window(column, longest: int, key: str) -> tuple[int, int]:
    if key in st.session_state:
        low, high = st.session_state[key]
        if high > longest:
            st.session_state[key] = (min(low, longest), longest)
    return column.slider("Steps", 1, longest, default_steps(longest), key=key, bind="query-params")


def only_lists(request: Request, names: dict[str, str]) -> None:
    """Step at which the best paths part, and the candidates that only one search considered."""
    difference = beam_difference(request)
    step = difference.divergence_step
    st.text("Both searches end in the same translation." if step is None else f"The best paths part at step {step}.")
    columns = st.columns(2)
    for column, run, table in zip(columns, request.runs, (difference.only_a, difference.only_b), strict=False):
        column.markdown(f"**Only {escape_markdown(names[run.name])}** considered {len(table)} candidates")
        shown = table.assign(prefix=[" ".join(prefix) for prefix in table["prefix"]])
        column.dataframe(
            with_drawn_pieces(shown),
            hide_index=True,
            placeholder="–",
            height=300,
            key=f"only-{run.name}",
            column_order=["step", "prefix", "word", "score", "fate"],
            column_config={
                "step": "Step",
                "prefix": "After",
                "word": "Word",
                "fate": "Fate",
                "score": st.column_config.NumberColumn("Σ log P (nats)", format="%.2f"),
            },
            alt="Candidates that only this search considered",
        )
