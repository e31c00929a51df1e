"""Whom pages let in themselves: who came through the guard and, where it is asked for, Streamlit's own login."""

from __future__ import annotations

import os

import streamlit as st

from workbench.store import read_only
from workbench.store.runs import runs_folder

GUARDED = "WORKBENCH_GUARDED_BY"  # in the environment: the number of the process that has `access` before its pages
LOGIN = "WORKBENCH_LOGIN"  # in the environment: pages ask for Streamlit's own login


def admit() -> None:
    """End the page for whoever is not to see it, saying why; before any page can change what is shown."""
    if read_only.active():
        read_only.protect(runs_folder())
    guarded = os.environ.get(GUARDED) == str(os.getpid())
    if not guarded and st.context.headers:  # those of a browser; a test of pages has none
        st.error("Nothing guards this server. Start the workbench by one of:")
        st.code("workbench app\nstreamlit run app.py", language="bash")
        st.stop()
    if guarded and os.environ.get(LOGIN) and not st.user.is_logged_in:
        st.title("NMT workbench")
        st.button("Log in", on_click=st.login, type="primary", key="log-in")
        st.stop()
