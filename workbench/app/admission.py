"""Admission to pages: requests that came through the guard and, if required, Streamlit's own login."""

from __future__ import annotations

import os

import streamlit as st

from workbench.store import read_only
from workbench.store.runs import runs_folder

GUARDED = "WORKBENCH_GUARDED_BY"  # environment variable: the id of the process whose pages are behind `access`
LOGIN = "WORKBENCH_LOGIN"  # environment variable: pages require Streamlit's own login


def admit() -> None:
    """Stop the page with a message for users without access, before it can change anything."""
    if read_only.active():
        read_only.protect(runs_folder())
    guarded = os.environ.get(GUARDED) == str(os.getpid())
    if not guarded and st.context.headers:  # headers of a browser; a page test has none
        st.error("Nothing guards this server. Start the workbench by one of:")
        st.code("workbench app\nstreamlit run app.py", language="bash")
        st.stop()
    if guarded and os.environ.get(LOGIN) and not st.user.is_logged_in:
        st.title("NMT workbench")
        st.button("Log in", on_click=st.login, type="primary", key="log-in")
        st.stop()
