"""Parts of the page Help: terms with links to pages, formulas, keys, the runs folder, a report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from workbench.app import health, sidebar
from workbench.app.frame import escape_markdown, page_file
from workbench.app.glossary import Formula, Term
from workbench.jobs import queue

KEYS = {
    sidebar.PREVIOUS_KEY: "Previous sentence; not while you type in a text field",
    sidebar.NEXT_KEY: "Next sentence; not while you type in a text field",
    "R": "Run the page again: finds runs and translations that are new",
    "Tab, Shift Tab": "To the next control, to the one before",
    "Enter, Space": "Press the button, open the list, take the choice",
    "← →": "Along tabs, sliders and the cells of a table",
    "Ctrl F (⌘ F)": "Search in a table, once one of its cells is chosen",
    "Esc": "Close a list, a table's search or what lies over the page",
}
IN_A_RUN = {
    "config.yaml": "How it was made: model, data, training, search",
    "weights.safetensors": "The weights of its best step",
    "vocabulary/": "The pieces of source and target",
    "training.jsonl": "What training logged, a line a record",
    "state/": "The last states of training, from which it is resumed",
    ".training.lock": "Held by the process that trains the run; empty otherwise",
    ".translations.lock": "Held by the process that writes translations; empty otherwise",
    "checkpoints/": "Weights of single steps; RUN@step names one",
    "translations/TEST/": "Texts, a line a sentence; how each came about; beam trees; shown while its weights are the "
    "ones that made them",
    "traces/TEST/": "What happened inside, as arrays",
    "beam_sizes/TEST.json": "What was measured by beam size",
    "rescoring/TEST.npz": "What each head says of every hypothesis of the n-best lists, with its counts for BLEU",
    "contrast/": "What contrastive sets said of it",
    "adequacy/TEST.json": "Coverage and its proxies, once they were computed: may be removed",
    "counterparts/TEST.json": "Words left out and repeated by the truth, once they were counted: may be removed",
    "alignment_error/TEST.json": "Alignment errors, once they were computed: may be removed",
    "probe/TEST.json": "What a probe read in its states, once it was asked: may be removed",
    "scores/": "Counts for scores and measures of routing, kept for speed: may be removed",
    "known_scores/TEST.json": "BLEU as it was counted last: may be removed",
}
_BESIDE_RUNS = {
    "NAME/ or GROUP/NAME/": "A run: a folder with a config.yaml",
    "GROUP/data/": "Prepared text and test sets of the runs beside it",
    "GROUP/data.json": "The settings that the text of a grid was prepared with",
    "GROUP/aligners/": "Frozen word aligners: may be removed, they are trained again",
    "GROUP/precision.json": "The precision that a grid with precision: auto found faster",
    "annotations/TEST/": "Labels and scores of sentences, added on the page Sentences",
    ".basket.json": "The figure collection",
    ".ratings/NAME/": "A study of human ratings, and a file for each rater",
}


def show_terms(terms: Sequence[Term]) -> None:
    """Terms with other names, explanation, and a link to the page that shows them."""
    if not terms:
        st.text("No term and no explanation has this text.")
    for term in terms:
        left, right = st.columns([2, 7], gap="small")
        left.markdown(f"**{escape_markdown(term.name)}**")
        if term.also:
            left.caption(escape_markdown(", ".join(term.also)))
        right.text(term.definition)
        if term.page:
            right.page_link(page_file(term.page), icon=":material/arrow_forward:")


def show_formulas(formulas: Sequence[Formula]) -> None:
    for formula in formulas:
        with st.container(border=True):
            st.markdown(f"**{escape_markdown(formula.name)}**")
            st.latex(formula.latex)
            st.markdown(formula.where)
            st.caption(escape_markdown(formula.source))


def show_keys() -> None:
    _table("Key", KEYS, "Keys of this app")


def show_files(root: Path) -> None:
    """Files of the runs folder and of a run."""
    st.text(f"The runs folder is {root}. Another one is chosen when the app is started:")
    st.code("workbench app --runs FOLDER", language="bash")
    _table("In the runs folder", _BESIDE_RUNS, "What lies in the runs folder")
    st.text(f"Jobs and their logs are kept outside of it, for you alone: {queue.queue_of(root)}")
    _table("In a run", IN_A_RUN, "What lies in a run")


def show_report(root: Path) -> None:
    """Versions to send with a report, ready to copy."""
    st.text(
        "A report that can be followed says what you did, what you expected and what came instead: the sentence on the "
        "page, the command that stands behind “Command”, the log of the job. Send these versions along:"
    )
    st.code("\n".join(f"{part.name}: {part.value}" for part in health.health()), language=None)
    st.text(
        "Errors are shown as sentences. Where one is not enough, start the app so that it writes the whole traceback "
        "to its terminal:"
    )
    st.code(f"WORKBENCH_DEBUG=1 {shlex.join(['workbench', 'app', '--runs', str(root)])}", language="bash")
    st.text("Texts, runs and logs stay on this machine: nothing is sent unless you send it.")


def _table(heading: str, rows: dict[str, str], description: str) -> None:
    st.dataframe(
        {"name": list(rows), "description": list(rows.values())},
        hide_index=True,
        placeholder="–",
        column_config={
            "name": st.column_config.TextColumn(heading, width="medium"),
            "description": st.column_config.TextColumn(
                "What it is" if heading != "Key" else "What it does", width="large"
            ),
        },
        height="content",
        alt=description,
    )
