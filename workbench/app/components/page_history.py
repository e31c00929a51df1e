"""Restores the choices on a page when the browser's Back or Forward button leads to it. Knows no page."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

SHARED = ("runs", "test", "sentence", "baseline")  # parameters in the URL of every page
_PAGE = "_page"


def restore(page: str) -> None:
    """Rerun a page that was entered by Back or Forward if its URL has no parameters of its own.

    Streamlit keeps the choices on a page, but removes them from the URL when the page is left; on the way back, a URL
    without them means the defaults. A second run, which is not by Back, shows the kept choices.
    """
    entered = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    by_history = getattr(get_script_run_ctx(), "is_history_navigation", False)
    if entered and by_history and set(st.query_params) <= set(SHARED):
        st.rerun()
