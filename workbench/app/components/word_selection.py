"""The selected words of the chosen sentence, one a side: in the URL, and the same on all pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import streamlit as st

from workbench.app.frame import current
from workbench.plotting.grammar import Side

KEYS: dict[Side, str] = {"source": "source-word", "target": "target-word"}  # in the URL
_SELECTED = "_selected-words"  # in the session: test set and sentence, and the numbers of the words by side


def selected() -> dict[Side, int]:
    """The numbers of the selected words, counted from 0; empty without one."""
    view = current().view
    if _SELECTED not in st.session_state:
        st.session_state[_SELECTED] = (view.test, view.sentence), _of_url()
    sentence, words = st.session_state[_SELECTED]
    if sentence != (view.test, view.sentence):
        words = {}
    return words


def select(words: dict[Side, int]) -> None:
    """Select these words of the chosen sentence, and no other one."""
    view = current().view
    st.session_state[_SELECTED] = (view.test, view.sentence), words


def write_url() -> None:
    """Write the selection to the URL; for pages on one sentence, once in a run."""
    words = selected()
    for side, key in KEYS.items():
        if side in words:
            if st.query_params.get(key) != str(words[side]):
                st.query_params[key] = str(words[side])
        elif key in st.query_params:
            del st.query_params[key]


def _of_url() -> dict[Side, int]:
    texts = {side: st.query_params.get(key, "") for side, key in KEYS.items()}
    return {side: int(text) for side, text in texts.items() if text.isascii() and text.isdigit() and len(text) < 6}


def follow(key: str, side: Side, words: Sequence[int], without: str) -> None:
    """Let a slider over the positions of a text go to a word when it is selected, and back when it no longer is.

    key: of the slider. words: the number of the word at each position. without: the slider's value for no word.
    """
    followed, word = f"_followed-{key}", selected().get(side)
    before = cast(int | None, st.session_state.get(followed))
    if word == before:
        return
    st.session_state[followed] = word
    if word is None:
        st.session_state[key] = without
    elif word in words:
        st.session_state[key] = str(list(words).index(word))
