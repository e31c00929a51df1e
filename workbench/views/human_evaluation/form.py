"""Form of a blind rating: translations under letters, each below the source whose words are marked, and its quality.

The browser gets no names of systems. Clicks on words cause no rerun: the button submits the whole form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from analyses.ratings import QUALITIES
from workbench.app.components import stepper, word_diff, word_marks
from workbench.app.frame import escape_markdown
from workbench.store import rating_studies as rating
from workbench.store.rating_studies import Item, Mark, Study
from workbench.store.runs import RunError

_MARKS = {"under": "under-translated", "over": "over-translated"}
_NOTICE = "rating-notice"
_SUBMISSIONS = "rating-submissions"


def show(study: Study, rater: str) -> None:
    """Form of the rater's current sentence; initially the first one without ratings."""
    marks = rating.marks(study, rater)
    rated = [rating.is_rated(study, rater, item, marks) for item in study.items]
    position = _position(study, rater, rated)
    st.progress(sum(rated) / len(rated), f"{sum(rated)} of {len(rated)} sentences rated")
    if all(rated):
        st.success("All sentences are rated; thank you. A rating can still be changed.")
    item = study.items[position]
    _steps(study, rater, position, rated)
    if notice := st.session_state.pop(_NOTICE, None):
        st.warning(escape_markdown(notice))
    if study.show_reference and item.reference is not None:
        with st.container(border=True):
            word_diff.show([word_diff.html_line("reference", word_diff.plain(item.reference))])
    with st.form(f"rating-{study.name}-{rater}-{item.sentence}", border=False):
        for letter, text in study.translations_by_letter(rater, item).items():
            _translation(study, rater, item, letter, text, marks.get(item.sentence, {}).get(letter))
        st.form_submit_button("Save and next", on_click=_save, args=(study, rater, position), type="primary")


def _translation(study: Study, rater: str, item: Item, letter: str, text: str, mark: Mark | None) -> None:
    with st.container(border=True):
        key, submissions = _key(study, rater, item, letter, "words"), st.session_state.get(_SUBMISSIONS, 0)
        word_marks.show(_source(item, mark), [(letter, text)], _MARKS, key, submissions)
        st.segmented_control(
            f"Quality of {letter}, 5 is best",
            QUALITIES,
            default=mark.quality if mark else None,
            key=_key(study, rater, item, letter, "quality"),
        )


def _source(item: Item, mark: Mark | None) -> word_marks.MarkedLine:
    """The words of the source, marked as in the rating that is stored."""
    return word_marks.MarkedLine("source", item.words, {side: getattr(mark, side) for side in _MARKS} if mark else {})


def _position(study: Study, rater: str, rated: list[bool]) -> int:
    """Index of the rater's current sentence, kept in the session."""
    key = _position_key(study, rater)
    if key not in st.session_state:
        st.session_state[key] = rated.index(False) if False in rated else 0
    return int(st.session_state[key])


def _steps(study: Study, rater: str, position: int, rated: list[bool]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"Sentence {position + 1} of {len(rated)}" + (", rated" if rated[position] else ""))
        key = _position_key(study, rater)
        stepper.show(position, len(rated) - 1, ("Back", "Forward"), partial(_step, len(rated) - 1), key)
        unrated = _next(rated, -1)
        st.button(
            "First not rated",
            on_click=stepper.set_number,
            args=(key, unrated),
            disabled=unrated < 0,
            key="rating-first",
        )


def _step(last: int, position: int, delta: int) -> int:
    return min(max(0, position + delta), last)


def _next(rated: list[bool], position: int) -> int:
    """Index of the next unrated sentence after a position, else of the first one; -1 if all are rated."""
    unrated = [number for number, is_rated in enumerate(rated) if not is_rated]
    return next((number for number in unrated if number > position), unrated[0] if unrated else -1)


def _position_key(study: Study, rater: str) -> str:
    return f"rating-place-{study.name}-{rater}"


def _key(study: Study, rater: str, item: Item, letter: str, part: str) -> str:
    return f"rating-{study.name}-{rater}-{item.sentence}-{letter}-{part}"


def _save(study: Study, rater: str, position: int) -> None:
    """Save the form if every translation has a quality, and go to the next sentence."""
    st.session_state[_SUBMISSIONS] = st.session_state.get(_SUBMISSIONS, 0) + 1
    item = study.items[position]
    try:
        marks = _filled_in(study, rater, item)
        missing = [letter for letter in study.translations_by_letter(rater, item) if letter not in marks]
        if missing:
            raise RunError(f"Give every translation a quality; {', '.join(missing)} has none yet.")
        rating.save(study, rater, {item.sentence: marks})
    except RunError as error:
        st.session_state[_NOTICE] = str(error)
        return
    stepper.set_number(_position_key(study, rater), _after(study, rater, position, rating.marks(study, rater)))


def _filled_in(study: Study, rater: str, item: Item) -> dict[str, Mark]:
    """The ratings in the form, of the translations that have a quality."""
    stored = rating.marks(study, rater).get(item.sentence, {})
    marks = {}
    for letter in study.translations_by_letter(rater, item):
        quality = st.session_state.get(_key(study, rater, item, letter, "quality"))
        source, key = _source(item, stored.get(letter)), _key(study, rater, item, letter, "words")
        if quality is not None:
            marks[letter] = Mark(int(quality), **word_marks.marked(source, _MARKS, key))
    return marks


def _after(study: Study, rater: str, position: int, marks: Mapping[int, Mapping[str, Mark]]) -> int:
    rated = [rating.is_rated(study, rater, item, marks) for item in study.items]
    following = _next(rated, position)
    return position if following < 0 else following
