"""Whom pages let in themselves: who has passed Streamlit's own login and, without a guard, this machine alone."""

from __future__ import annotations

import os

import streamlit as st

from workbench.access import is_loopback

GUARDED = "WORKBENCH_GUARDED_BY"  # in the environment: the number of the process that has `access` before its pages
LOGIN = "WORKBENCH_LOGIN"  # in the environment: pages ask for Streamlit's own login


def admit() -> None:
    """End the page for whoever is not to see it, saying why."""
    guarded = os.environ.get(GUARDED) == str(os.getpid())
    if not guarded and not is_loopback(st.context.ip_address or "localhost"):
        st.error("`streamlit run` asks nobody for a token and shows this machine alone. Start it so that others may:")
        st.code("workbench app --host ADDRESS --allow NAME", language="bash")
        st.stop()
    if guarded and os.environ.get(LOGIN) and not st.user.is_logged_in:
        st.title("NMT workbench")
        st.button("Log in", on_click=st.login, type="primary", key="log-in")
        st.stop()
