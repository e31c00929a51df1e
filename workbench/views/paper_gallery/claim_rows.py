"""First part of the page Paper gallery: a row a claim with what is reported, ours, and the verdict."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from workbench.app.components import figure_view
from workbench.app.components.empty_states import empty_state
from workbench.app.frame import Frame, escape_markdown
from workbench.papers import claims
from workbench.papers.presets import cited_as
from workbench.papers.schema import Paper

_COLORS = {claims.HOLDS: "green", claims.REFUTED: "orange", claims.MIXED: "violet"}  # others are grey
_HEADS = {"claim": "Claim", "reported": "Reported gain", "ours": "Ours", "verdict": "Verdict"}
_RULE = (
    "A claim is the gain of a system over the plain model above it in a table. It holds where the 95% interval of our "
    "difference lies on the reported side of 0, is refuted here where it lies on the other, else it is undecided. One "
    "training counts only where no experiment has several seeds. Ours: experiments in which the two differ by nothing "
    "else, of other data than the paper's and of small models, so no reproduction."
)


def show(name: str, paper: Paper, frame: Frame) -> None:
    """The claims of a paper as a figure, a row a claim, and as a table with verdicts."""
    table = _claims(name, tuple(path.stat().st_mtime_ns for path in claims.comparison_files()), paper)
    if table.empty:
        empty_state(
            f"{cited_as(paper)} reports no score of a system beside a plain model, so there is no row of claims."
        )
        return
    figure_view.show("paper-claims", frame.request((), paper=name))
    texts = table.map(escape_markdown).assign(verdict=table["verdict"].map(_badge), ours=table["ours"].map(_listed))
    st.table(texts.rename(columns=_HEADS).set_index("Claim"))
    st.caption(_RULE)


@st.cache_data(max_entries=8, show_spinner="Reading the experiments")
def _claims(name: str, written: tuple[int, ...], _paper: Paper) -> pd.DataFrame:
    return claims.claim_table(claims.reported_gains(_paper), claims.measured_gains(_paper))


def _badge(verdict: str) -> str:
    color = next((color for found, color in _COLORS.items() if verdict.startswith(found)), "gray")
    return f":{color}-badge[{verdict}]"


def _listed(ours: str) -> str:
    """One line for each data set."""
    return "  \n".join(map(escape_markdown, ours.split("; "))) if ours else "–"
