"""A link that leads to a page with other runs and another sentence than the sidebar's."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from workbench.app.components import stepper
from workbench.app.frame import page_file
from workbench.app.url_state import ViewState


def show(label: str, page: str, view: ViewState, choices: Mapping[str, str], key: str, icon: str | None = None) -> None:
    """A button that selects the view in the sidebar and opens a page. choices: of the page's controls, by their keys.

    A page link cannot do it: Streamlit writes the sidebar's present selection over that of a link within the app.
    """
    if st.button(label, type="tertiary", key=key, icon=icon, on_click=_select, args=(view, choices)):
        st.switch_page(page_file(page), query_params={})  # without it Streamlit refuses to drop those of the sidebar


def _select(view: ViewState, choices: Mapping[str, str]) -> None:
    st.session_state["runs"] = list(view.runs)
    st.session_state["test"] = view.test
    st.session_state["baseline"] = view.baseline
    stepper.set_number("sentence", view.sentence)
    for key, value in choices.items():
        st.session_state[key] = value
