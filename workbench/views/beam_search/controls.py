"""Controls and lists of the page Beam trees: which part of a search is drawn, and what only one search reached."""

from __future__ import annotations

import streamlit as st

from workbench.app.frame import escape_markdown
from workbench.figures.options import default
from workbench.figures.request import Request
from workbench.views.beam_search.figures import BeamOptions, usual_steps
from workbench.views.beam_search.measure import beam_difference


def options(longest: int, key: str = "") -> dict[str, object]:
    """The window of steps, minimum token probability, maximum nodes and whether pruned ones are drawn, from widgets."""
    columns = st.columns([3, 2, 2, 1.4], vertical_alignment="bottom")
    chosen: dict[str, object] = {}
    if longest > 1:
        chosen["steps"] = list(_window(columns[0], longest, f"steps{key}"))
    chosen["minimum_probability"] = columns[1].select_slider(
        "Min. token probability",
        [0.0, 0.001, 0.01, 0.05, 0.1],
        default(BeamOptions, "minimum_probability"),
        key=f"probability{key}",
        bind="query-params",
    )
    chosen["node_cap"] = columns[2].slider(
        "Max. nodes", 50, 800, default(BeamOptions, "node_cap"), 50, key=f"nodes{key}", bind="query-params"
    )
    chosen["pruned"] = columns[3].toggle(
        "Show pruned hypotheses",
        default(BeamOptions, "pruned"),
        key=f"pruned{key}",
        bind="query-params",
        help="Hypotheses that the search dropped",
    )
    return chosen


def _window(place, longest: int, key: str) -> tuple[int, int]:
    if key in st.session_state:
        low, high = st.session_state[key]
        if high > longest:
            st.session_state[key] = (min(low, longest), longest)
    return place.slider("Steps", 1, longest, usual_steps(longest), key=key, bind="query-params")


def only_lists(request: Request, names: dict[str, str]) -> None:
    """Where the best paths part, and the candidates that one search alone ever considered."""
    found = beam_difference(request)
    parted = found.divergence_step
    st.text(
        "Both searches end in the same translation." if parted is None else f"The best paths part at step {parted}."
    )
    columns = st.columns(2)
    for column, run, table in zip(columns, request.runs, (found.only_a, found.only_b), strict=False):
        column.markdown(f"**Only {escape_markdown(names[run.name])}** considered {len(table)} candidates")
        shown = table.assign(prefix=[" ".join(prefix) for prefix in table["prefix"]])
        column.dataframe(
            shown,
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
