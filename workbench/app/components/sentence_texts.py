"""The texts of the chosen sentence, for the top of pages on one sentence, with a search box for another one.

Hovering over a word shades the words of another line that belong to it; a click selects the word on the page's figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from analyses.sentences import REFERENCE, SOURCE
from workbench.app.components import word_selection
from workbench.app.components.row_selection import look_at
from workbench.app.components.shadings import Shading, antecedents, gold
from workbench.app.frame import Frame
from workbench.store.runs import short_names
from workbench.store.translations import Translations

MOST_FOUND = 50
_KEY = "sentence-texts"
_HERE = Path(__file__)
_texts = st.components.v2.component(
    "nmt_workbench_sentence_texts",
    html='<div class="texts"></div>',
    css=_HERE.with_suffix(".css").read_text(encoding="utf-8"),
    js=_HERE.with_suffix(".js").read_text(encoding="utf-8"),
)


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


def show(frame: Frame, shadings: Sequence[Shading] = ()) -> None:
    """Show source, reference and translations of the sentence, and a search box for another one.

    shadings: in addition to those of the test set, its gold alignment and the antecedents of pronouns.
    """
    before, of_pronouns = antecedents(frame)
    lines = [_line(frame, label, text) for label, text in {**before, **texts(frame)}.items()]
    with st.container(border=True):
        _texts(key=_KEY, data=_data(lines, [*shadings, *gold(frame), *of_pronouns]), on_words_change=_select)
        _search(frame.tested[0].translations(frame.view.test))
    word_selection.write_url()


def _data(lines: list[dict[str, Any]], shadings: Sequence[Shading]) -> dict[str, Any]:
    """What the script of the texts is given; without shadings of other words than the lines have."""
    places = {line["label"]: number for number, line in enumerate(lines)}
    counts = {line["label"]: len(line["words"]) for line in lines}
    fitting = [shading for shading in shadings if shading.weights.shape == (counts[shading.over], counts[shading.on])]
    return {
        "lines": lines,
        "selected": word_selection.selected(),
        "shadings": [
            {"name": shading.name, "over": places[shading.over], "on": places[shading.on],
             "weights": shading.weights.round(3).tolist()}
            for shading in fitting
        ],
    }  # fmt: skip


def _select() -> None:
    reported = (st.session_state.get(_KEY) or {}).get("words")
    if reported is not None:
        word_selection.select(reported)


def _line(frame: Frame, label: str, text: str | None) -> dict[str, Any]:
    """A line by words, which can be selected in the source and on the side of the target."""
    other = f"(another sentence: its test set {frame.view.test} differs)"
    side = "source" if label == SOURCE else "target" if label in (REFERENCE, *_names(frame)) else ""
    return {"label": label, "side": side, "words": (text or "").split(),
            "note": other if text is None else "" if text else "(empty)"}  # fmt: skip


def _names(frame: Frame) -> list[str]:
    return list(short_names(frame.tested).values())


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
