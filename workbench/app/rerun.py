"""A rerun that loses no click. Knows no page."""

from __future__ import annotations

import streamlit as st


def rerun() -> None:
    """Rerun the script, or do instead what the user has asked for meanwhile: another page, another choice.

    `st.rerun` alone would replace a request that waits, and so drop a click on a link.
    """
    st.empty()  # Streamlit looks for a waiting request whenever an element is drawn, and begins it
    st.rerun()  # noqa: TID251
