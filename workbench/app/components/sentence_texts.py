"""The texts of the chosen sentence, for the top of pages on one sentence, with a search box for another one."""

from __future__ import annotations

import streamlit as st

from analyses.sentences import REFERENCE, SOURCE
from workbench.app.components.row_selection import look_at
from workbench.app.frame import Frame, escape_markdown
from workbench.store.runs import short_names
from workbench.store.translations import Translations

MOST_FOUND = 50


def texts(frame: Frame) -> dict[str, str | None]:
    """Source, reference (if there is one) and translations of the sentence by name.

    The translation is None for a run whose test set has another sentence at this number.
    """
    opened = {run.name: run.translations(frame.view.test) for run in frame.tested}
    test_set = next(iter(opened.values())).test_set
    names, number = short_names(frame.tested), frame.view.sentence
    text_of: dict[str, str | None] = {SOURCE: test_set.sources[number]}
    if test_set.references is not None:
        text_of[REFERENCE] = test_set.references[number]
    for name, translations in opened.items():
        text_of[names[name]] = (
            translations.hypotheses[number] if translations.test_set.sources[number] == text_of[SOURCE] else None
        )
    return text_of


def show(frame: Frame) -> None:
    """Show source, reference and translations of the sentence, and a search box for another one."""
    with st.container(border=True):
        for label, text in texts(frame).items():
            side, wide = st.columns([1, 6], gap="small")
            side.caption(escape_markdown(label))
            other = f"(another sentence: its test set {frame.view.test} differs)"
            wide.text(other if text is None else text or "(empty)")
        _search(frame.tested[0].translations(frame.view.test))


def _search(translations: Translations) -> None:
    query = (
        st.text_input(
            "Find a sentence", placeholder="a word of the source or the reference", key="find", persist_state="session"
        )
        .strip()
        .lower()
    )
    if not query:
        return
    test_set = translations.test_set
    sides = [test_set.sources, test_set.references or []]
    lines = [
        number
        for number in range(len(test_set.sources))
        if any(query in side[number].lower() for side in sides if side)
    ]
    if not lines:
        st.text(f"No sentence has {query!r}.")
        return
    shown = lines[:MOST_FOUND]
    st.dataframe(
        {"sentence": shown, "source": [test_set.sources[number] for number in shown]},
        hide_index=True,
        placeholder="–",
        height=180,
        key="found",
        on_select=lambda: look_at("found", shown),
        selection_mode="single-row",
        alt="Sentences found; select one to look at it",
    )
    st.caption(
        f"{len(lines)} found"
        + (f", the first {MOST_FOUND} shown" if len(lines) > MOST_FOUND else "")
        + "; select a row to look at it."
    )
