"""Whom pages let in themselves: who has passed Streamlit's own login and, without a guard, this machine alone."""

from __future__ import annotations

import os

import streamlit as st

from workbench.app.access import is_loopback
from workbench.store import read_only
from workbench.store.runs import runs_folder

GUARDED = "WORKBENCH_GUARDED_BY"  # in the environment: the number of the process that has `access` before its pages
LOGIN = "WORKBENCH_LOGIN"  # in the environment: pages ask for Streamlit's own login


def admit() -> None:
    """End the page for whoever is not to see it, saying why; before any page can change what is shown."""
    if read_only.active():
        read_only.protect(runs_folder())
    guarded = os.environ.get(GUARDED) == str(os.getpid())
    asked_from = st.context.ip_address
    if not guarded and isinstance(asked_from, str) and not is_loopback(asked_from):
        st.error("`streamlit run` asks nobody for a token and shows this machine alone. Start it so that others may:")
        st.code("workbench app --host ADDRESS --allow NAME", language="bash")
        st.stop()
    if guarded and os.environ.get(LOGIN) and not st.user.is_logged_in:
        st.title("NMT workbench")
        st.button("Log in", on_click=st.login, type="primary", key="log-in")
        st.stop()
