"""The order in which the sidebar goes from sentence to sentence: by number, or that of the page Sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

_KEY = "_sentence_order"


@dataclass(frozen=True, eq=False)
class SentenceOrder:
    """The sentences of a test set that the page Sentences shows, in its order."""

    test: str
    rows: np.ndarray

    def position(self, sentence: int) -> int:
        """The position of a sentence, -1 if it is not among them."""
        found = np.flatnonzero(self.rows == sentence)
        return int(found[0]) if len(found) else -1

    def step(self, sentence: int, by: int) -> int:
        """The sentence `by` positions further; from one that is not among them, as if it stood before the first."""
        return int(self.rows[min(max(0, self.position(sentence) + by), len(self.rows) - 1)])


def keep(test: str, rows: np.ndarray, sentences: int) -> None:
    """Go in this order from now on, on all pages; by number if it holds none of the test set's sentences, or all."""
    by_number = not len(rows) or np.array_equal(rows, np.arange(sentences))
    st.session_state[_KEY] = None if by_number else SentenceOrder(test, rows)


def of_test(test: str) -> SentenceOrder | None:
    """The order of a test set's sentences; None: by number."""
    kept = st.session_state.get(_KEY)
    return kept if kept is not None and kept.test == test else None
