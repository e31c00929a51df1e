"""Table of the page Runs; its selected rows are the chosen runs of the sidebar."""

from __future__ import annotations

import shlex
import zlib

import streamlit as st

from workbench.app import url_state
from workbench.app.components.empty_states import empty_state
from workbench.app.frame import Frame, escape_markdown
from workbench.evaluation import run_table
from workbench.figures.request import looks
from workbench.plotting import theme

_COLUMNS = {
    "line": st.column_config.ImageColumn("", width="small"),
    "run": "Run",
    "bleu": st.column_config.NumberColumn("BLEU", format="%.2f"),
    "dev_loss": st.column_config.NumberColumn("Dev loss (nats/token)", format="%.3f"),
    "step": st.column_config.NumberColumn("Step", format="localized"),
    "of": "Planned",
    "state": "State",
    "data": "Data",
    "tests": "Test sets",
    "system": st.column_config.TextColumn("Model", width=330),
}


def show(frame: Frame) -> None:
    """Table of runs, and the broken runs with their reasons."""
    with st.spinner("Reading the runs"):
        table = run_table.runs_table(frame.runs, frame.view.test)
    usable = table[table["problem"] == ""].reset_index(drop=True)
    styles = looks(frame.chosen)
    usable.insert(0, "line", [_swatch(styles[name]) if name in styles else None for name in usable["run"]])
    names = usable["run"].tolist()
    if names:
        selected = [names.index(name) for name in frame.view.runs]
        # Rows are selected by their places: a new selection in the sidebar is a new table, and so are new rows.
        key = f"runs-table-{zlib.crc32('|'.join(names).encode()):08x}-{'|'.join(sorted(frame.view.runs))}"
        st.dataframe(
            usable,
            hide_index=True,
            column_config=_COLUMNS,
            column_order=list(_COLUMNS),
            placeholder="",
            key=key,
            on_select=lambda: select(key, names),
            selection_mode="multi-row",
            selection_default={"selection": {"rows": selected}},
            alt="The runs below the runs folder",
        )
        if frame.view.test:
            st.caption(escape_markdown(f"BLEU: of the test set {frame.view.test}, where a run has translated it."))
            _offer_to_score(frame, set(usable.loc[usable["bleu"].isna(), "run"]))
    broken = table[table["problem"] != ""]
    if len(broken):
        st.subheader("Invalid runs")
        for run, problem in zip(broken["run"], broken["problem"], strict=True):
            with st.container(border=True):
                st.text(run)
                st.error(escape_markdown(problem))


def _offer_to_score(frame: Frame, without: set[str]) -> None:
    """Command that computes missing scores, which take too long for a page."""
    runs = run_table.unscored([run for run in frame.runs if run.name in without], frame.view.test)
    if runs:
        command = ["workbench", "evaluate", *(run.argument for run in runs), "--test", frame.view.test]
        empty_state(
            f"BLEU of {len(runs)} of them was not computed yet, which takes a while on a large test set. Compute it:",
            shlex.join([*command, "--metrics", "bleu"]),
        )


def select(key: str, names: list[str]) -> None:
    """Choose the runs of the selected rows."""
    rows = st.session_state[key]["selection"]["rows"]
    if len(rows) > url_state.MOST_RUNS:
        st.toast(f"At most {url_state.MOST_RUNS} runs are shown at once; the first {url_state.MOST_RUNS} are taken.")
    st.session_state["runs"] = [names[row] for row in sorted(rows)[: url_state.MOST_RUNS]]


def _swatch(style: theme.SeriesStyle) -> str:
    """Line in the color and dash of a run, as an image in a data URL."""
    from urllib.parse import quote

    color = theme.on_page(style.colour, st.context.theme.type == "dark")
    dashes = {
        "solid": "",
        "dash": "7 4",
        "dot": "2 3",
        "dashdot": "7 3 2 3",
        "longdash": "12 4",
        "longdashdot": "12 3 2 3",
    }
    image = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><path d="M2 10H58" stroke-width="3" '
        f'stroke="{color}" stroke-dasharray="{dashes[style.dash]}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(image)}"
