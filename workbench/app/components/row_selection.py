"""A row that is selected in a table is the sentence that all pages show. Knows no table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from workbench.app.components.stepper import put


def look_at(key: str, sentences: Sequence[int] | np.ndarray) -> None:
    """Make the sentence of the row that is selected in a table (by its key) the chosen one."""
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        put("sentence", int(sentences[rows[0]]))
