"""The form of a blind rating: a source, its translations under letters, a quality and marked source words for each.

What the browser gets names no system. Nothing is rerun while words are clicked: all of it goes out with the button.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

import streamlit as st

from analyses.ratings import QUALITIES
from workbench.app.components import stepper, word_diff
from workbench.app.frame import escape_markdown
from workbench.store import rating_studies as rating
from workbench.store.rating_studies import Item, Mark, Study
from workbench.store.runs import RunError

_WORDS = {"over": "Over-translated: translated more often than it stands there", "under": "Under-translated: left out"}
_NOTICE = "rating-notice"


def show(study: Study, rater: str) -> None:
    """The sentence of the study at which the rater stands, the first that is not rated when they come back."""
    given = rating.marks(study, rater)
    rated = [rating.is_rated(study, rater, item, given) for item in study.items]
    place = _place(study, rater, rated)
    st.progress(sum(rated) / len(rated), f"{sum(rated)} of {len(rated)} sentences rated")
    if all(rated):
        st.success("All sentences are rated; thank you. A rating can still be changed.")
    item = study.items[place]
    _steps(study, rater, place, rated)
    if notice := st.session_state.pop(_NOTICE, None):
        st.warning(escape_markdown(notice))
    lines = [word_diff.html_line("source", word_diff.plain(item.source))]
    if study.show_reference and item.reference is not None:
        lines.append(word_diff.html_line("reference", word_diff.plain(item.reference)))
    with st.container(border=True):
        word_diff.show(lines)
    with st.form(f"rating-{study.name}-{rater}-{item.sentence}", border=False):
        for letter, text in study.shown(rater, item).items():
            _translation(study, rater, item, letter, text, given.get(item.sentence, {}).get(letter))
        st.form_submit_button("Save and next", on_click=_save, args=(study, rater, place), type="primary")


def _translation(study: Study, rater: str, item: Item, letter: str, text: str, mark: Mark | None) -> None:
    with st.container(border=True):
        word_diff.show([word_diff.html_line(letter, word_diff.plain(text))])
        st.segmented_control(
            f"Quality of {letter}, 5 is best",
            QUALITIES,
            default=mark.quality if mark else None,
            key=_key(study, rater, item, letter, "quality"),
        )
        labels = word_labels(item.words)
        for side, said in _WORDS.items():
            st.pills(
                said,
                range(len(labels)),
                format_func=labels.__getitem__,
                selection_mode="multi",
                default=list(getattr(mark, side)) if mark else None,
                key=_key(study, rater, item, letter, side),
            )


def word_labels(words: list[str]) -> list[str]:
    """A label for each source word, no two the same: a word that comes again carries its number."""
    seen: Counter[str] = Counter()
    labels = []
    for word in words:
        seen[word] += 1
        labels.append(escape_markdown(word if seen[word] == 1 else f"{word} ({seen[word]})"))
    return labels


def _place(study: Study, rater: str, rated: list[bool]) -> int:
    """Where the rater stands in the study, from 0; remembered for the session."""
    key = _place_key(study, rater)
    if key not in st.session_state:
        st.session_state[key] = rated.index(False) if False in rated else 0
    return int(st.session_state[key])


def _steps(study: Study, rater: str, place: int, rated: list[bool]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"Sentence {place + 1} of {len(rated)}" + (", rated" if rated[place] else ""))
        key = _place_key(study, rater)
        stepper.show(place, len(rated) - 1, ("Back", "Forward"), partial(_step, len(rated) - 1), key)
        waiting = _next(rated, -1)
        st.button(
            "First not rated", on_click=stepper.put, args=(key, waiting), disabled=waiting < 0, key="rating-first"
        )


def _step(last: int, place: int, by: int) -> int:
    return min(max(0, place + by), last)


def _next(rated: list[bool], place: int) -> int:
    """The first sentence after a place that is not rated, else the first at all; -1 where all are."""
    waiting = [number for number, done in enumerate(rated) if not done]
    return next((number for number in waiting if number > place), waiting[0] if waiting else -1)


def _place_key(study: Study, rater: str) -> str:
    return f"rating-place-{study.name}-{rater}"


def _key(study: Study, rater: str, item: Item, letter: str, part: str) -> str:
    return f"rating-{study.name}-{rater}-{item.sentence}-{letter}-{part}"


def _save(study: Study, rater: str, place: int) -> None:
    """Keep what the form says, if every translation has a quality, and go on to the next sentence."""
    item = study.items[place]
    given: dict[str, Mark] = {}
    missing = []
    for letter in study.shown(rater, item):
        said = {part: st.session_state.get(_key(study, rater, item, letter, part)) for part in ("quality", *_WORDS)}
        if said["quality"] is None:
            missing.append(letter)
        else:
            given[letter] = Mark(int(said["quality"]), tuple(said["over"] or ()), tuple(said["under"] or ()))
    if missing:
        st.session_state[_NOTICE] = f"Give every translation a quality; {', '.join(missing)} has none yet."
        return
    try:
        rating.save(study, rater, {item.sentence: given})
    except RunError as error:
        st.session_state[_NOTICE] = str(error)
        return
    stepper.put(_place_key(study, rater), _after(study, rater, place, rating.marks(study, rater)))


def _after(study: Study, rater: str, place: int, given: Mapping[int, Mapping[str, Mark]]) -> int:
    rated = [rating.is_rated(study, rater, item, given) for item in study.items]
    following = _next(rated, place)
    return place if following < 0 else following
