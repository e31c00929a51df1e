"""Import of translations made elsewhere on the page Runs: a file with a line for each sentence of a known test set."""

from __future__ import annotations

import streamlit as st

from workbench.app.frame import Frame, errors_as_messages, escape_markdown
from workbench.store import external, read_only

_IMPORTED = "imported-translations"


def show(frame: Frame) -> None:
    """A popover with the form and what comes of it, where some run has a test set."""
    test_sets = [(known.name, test) for known in frame.known for test in known.tests]
    if not test_sets:
        return
    closed = read_only.active()
    with st.popover("Import translations", disabled=closed, help=read_only.WHY if closed else None):
        st.caption("Of a system that is not trained here: plain text in UTF-8, a line for each sentence of a test set.")
        with st.form("import-translations", border=False):
            name = st.text_input("Name of the system", key="import-name", placeholder="online-a").strip()
            chosen = (frame.view.baseline, frame.view.test)
            run_name, test = st.selectbox(
                "Test set",
                test_sets,
                test_sets.index(chosen) if chosen in test_sets else 0,
                format_func=lambda one: f"{one[1]} of {one[0]}",
                key="import-test-set",
            )
            file = st.file_uploader("File", key="import-file")
            submitted = st.form_submit_button("Import", type="primary", disabled=closed)
        with errors_as_messages():
            if submitted:
                if file is None:
                    raise ValueError("Choose a file with the translations.")
                (run,) = [run for run in frame.runs if run.name == run_name]
                test_set = run.translations(test).test_set
                external.import_content(frame.root, name, file.getvalue(), file.name, test_set)
                st.session_state[_IMPORTED] = (
                    f"{external.FOLDER}/{name} is there, with {len(test_set.sources)} sentences of {test}; "
                    "choose it in the table."
                )
                st.rerun()  # the sidebar lists it
        if imported := st.session_state.pop(_IMPORTED, None):
            st.success(escape_markdown(imported))
