"""Selection of the sentence for all pages by a row of a table. Knows no table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from workbench.app.components.stepper import set_number


def look_at(key: str, sentences: Sequence[int] | np.ndarray) -> None:
    """Choose the sentence of the selected row of a table, given the table's key."""
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        set_number("sentence", int(sentences[rows[0]]))
