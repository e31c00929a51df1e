"""The sentence that is looked at, above every page inside it: its texts, and a search box for another one."""

from __future__ import annotations

import streamlit as st

from workbench.drawing import short_names
from workbench.frame import Frame, as_typed
from workbench.translations import Translations

MOST_FOUND = 50


def show(frame: Frame) -> None:
    """Source, reference and translations of the sentence, and a search box for another one."""
    opened = {run.name: run.translations(frame.view.test) for run in frame.tested}
    first = next(iter(opened.values()))
    names = short_names(frame.tested)
    number = frame.view.sentence
    rows = [("source", first.test_set.sources[number])]
    if first.test_set.references is not None:
        rows.append(("reference", first.test_set.references[number]))
    for name, found in opened.items():
        same = found.test_set.sources[number] == rows[0][1]
        said = (
            found.hypotheses[number] or "(empty)" if same else f"(another sentence: its test set {first.test} differs)"
        )
        rows.append((names[name], said))
    with st.container(border=True):
        for label, text in rows:
            side, wide = st.columns([1, 6], gap="small")
            side.caption(as_typed(label))
            wide.text(text)
        _search(first)


def _search(translations: Translations) -> None:
    wanted = (
        st.text_input(
            "Find a sentence", placeholder="a word of the source or the reference", key="find", persist_state="session"
        )
        .strip()
        .lower()
    )
    if not wanted:
        return
    test = translations.test_set
    sides = [test.sources, test.references or []]
    lines = [
        number for number in range(len(test.sources)) if any(wanted in side[number].lower() for side in sides if side)
    ]
    if not lines:
        st.text(f"No sentence has {wanted!r}.")
        return
    shown = lines[:MOST_FOUND]
    st.dataframe(
        {"sentence": shown, "source": [test.sources[number] for number in shown]},
        hide_index=True,
        height=180,
        key="found",
        on_select=lambda: _pick(shown),
        selection_mode="single-row",
        alt="Sentences found; select one to look at it",
    )
    st.caption(
        f"{len(lines)} found"
        + (f", the first {MOST_FOUND} shown" if len(lines) > MOST_FOUND else "")
        + "; select a row to look at it."
    )


def _pick(shown: list[int]) -> None:
    rows = st.session_state["found"]["selection"]["rows"]
    if rows:
        st.session_state["sentence"] = shown[rows[0]]
