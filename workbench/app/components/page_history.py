"""What was chosen on a page is there again when the browser's own button leads back to it. Knows no page."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

SHARED = ("runs", "test", "sentence", "baseline")  # what the URL of every page may say
_PAGE = "_page"


def restore(page: str) -> None:
    """Run a page again that was entered by Back or Forward, where its URL says nothing of its own.

    Streamlit keeps what was chosen on a page, but takes it out of the URL when the page is left; back there, a URL
    without it counts as a wish for the defaults. A second run, which is none by Back, shows what is kept.
    """
    entered = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    by_history = getattr(get_script_run_ctx(), "is_history_navigation", False)
    if entered and by_history and set(st.query_params) <= set(SHARED):
        st.rerun()
