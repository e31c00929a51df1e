"""Import of translations made elsewhere on the page Runs: a file with a line for each sentence of a known test set."""

from __future__ import annotations

import streamlit as st

from workbench.app import url_state
from workbench.app.frame import Frame, escape_markdown, page_file, show_error
from workbench.store import external, read_only

_IMPORTED, _REFUSED = "imported-translations", "refused-translations"  # in the session, until shown


def show(frame: Frame) -> None:
    """A popover with the form and what comes of it, where some run has a test set."""
    test_sets = [(known.name, test) for known in frame.known for test in known.tests]
    if not test_sets:
        return
    closed = read_only.active()
    with st.popover("Import translations", disabled=closed, help=read_only.WHY if closed else None):
        st.caption("Of a system that is not trained here: plain text in UTF-8, a line for each sentence of a test set.")
        with st.form("import-translations", border=False):
            st.text_input("Name of the system", key="import-name", placeholder="online-a")
            chosen = (frame.view.baseline, frame.view.test)
            st.selectbox(
                "Test set",
                test_sets,
                test_sets.index(chosen) if chosen in test_sets else 0,
                format_func=lambda one: f"{one[1]} of {one[0]}",
                key="import-test-set",
            )
            st.file_uploader("File", key="import-file")
            st.form_submit_button("Import", type="primary", disabled=closed, on_click=_submit, args=(frame,))
        if refused := st.session_state.pop(_REFUSED, None):
            show_error(refused)
        if imported := st.session_state.pop(_IMPORTED, None):
            st.success(escape_markdown(imported))
            st.page_link(page_file("scores"), label="Its scores beside the others", icon=":material/arrow_forward:")


def _submit(frame: Frame) -> None:
    """Import the file of the form and choose its system for all pages."""
    try:
        st.session_state[_IMPORTED] = _import(frame)
    except (ValueError, OSError) as error:
        st.session_state[_REFUSED] = error


def _import(frame: Frame) -> str:
    """The message on what was imported; raises RunError, TextError and ReadOnlyError."""
    name, file = st.session_state["import-name"].strip(), st.session_state["import-file"]
    run_name, test = st.session_state["import-test-set"]
    if file is None:
        raise ValueError("Choose a file with the translations.")
    (run,) = [run for run in frame.runs if run.name == run_name]
    test_set = run.translations(test).test_set
    external.import_content(frame.root, name, file.getvalue(), file.name, test_set)
    imported = f"{external.FOLDER}/{name}"
    chosen = frame.view.runs if run_name in frame.view.runs else (run_name,)
    beside = [run for run in chosen if run != imported]
    st.session_state["runs"] = runs = url_state.with_more(beside, [imported])
    gives_way = [run for run in beside if run not in runs]
    instead = f" in place of {gives_way[0]}" if gives_way else ""
    return f"{imported} is there, with {len(test_set.sources)} sentences of {test}, and chosen in the sidebar{instead}."
