"""First part of the page Paper gallery: a row a claim with what is reported, ours, and the verdict."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from workbench.app.components import figure_view
from workbench.app.components.empty_states import empty_state
from workbench.app.frame import Frame, escape_markdown
from workbench.experiments.ablation import result_tables
from workbench.papers import claims, ledger
from workbench.papers.presets import cited_as
from workbench.papers.schema import Paper

_COLORS = {claims.HOLDS: "green", claims.REFUTED: "orange", claims.MIXED: "violet"}  # others are grey
_HEADS = {"claim": "Claim", "kind": "Kind", "reported": "Reported", "ours": "Ours", "verdict": "Verdict",
          "smallest": "Smallest detectable difference"}  # fmt: skip
_RULE = (
    "A claim is the gain of a system over the plain model above it in a table, or a finding on an order, a curve, a "
    "property or a cost. It holds where the 95% interval of our difference lies on the reported side of 0 and leaves a "
    "share of what is reported possible (half of a gain). It is refuted here where the interval leaves that out. "
    "A speed holds where all measurements reach nine tenths of it. Else it is undecided, with the smallest difference "
    "that such an experiment sees four times in five. One training counts only where no experiment has several seeds, "
    "and a learning rate whose dev losses are known to be higher only where there is nothing else. Where n differences "
    "count, each decides by its interval at 1 - 0.05 / n. The table shows these intervals, the figure those at 95%. "
    f"Gains are left out where one of the two has less than {claims.MINIMUM_BLEU:.0f} BLEU. "
    "Claims are not corrected for each other: of twenty without an effect one may seem to have one. Ours: other data "
    "than the paper's and small models, so no reproduction."
)


def show(name: str, paper: Paper, frame: Frame) -> None:
    """The claims of a paper as a figure, a row a claim, and as a table with verdicts."""
    table = _claims(name, tuple(path.stat().st_mtime_ns for path in result_tables()), paper)
    if table.empty:
        empty_state(
            f"{cited_as(paper)} reports no score of a system beside a plain model and no finding, so there is no claim."
        )
        return
    figure_view.show("paper-claims", frame.request((), paper=name))
    ours = [_listed(line.ours, line.level) for line in table.itertuples()]
    texts = table.map(escape_markdown).assign(verdict=table["verdict"].map(_badge), ours=ours).drop(columns="level")
    st.table(texts.rename(columns=_HEADS).set_index("Claim"))
    st.caption(_RULE)


@st.cache_data(max_entries=8, show_spinner="Reading the experiments")
def _claims(name: str, written: tuple[int, ...], _paper: Paper) -> pd.DataFrame:
    return ledger.claim_table(claims.reported_claims(_paper), claims.measured_claims(_paper))


def _badge(verdict: str) -> str:
    color = next((color for found, color in _COLORS.items() if verdict.startswith(found)), "gray")
    return f":{color}-badge[{verdict}]"


def _listed(ours: str, level: str) -> str:
    """One line for each data set, below the level of all their intervals."""
    heading = [f"{level} intervals:"] if level else []
    return "  \n".join(map(escape_markdown, [*heading, *ours.split("; ")])) if ours else "–"
