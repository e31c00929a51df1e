"""Common parts of pages: the choice of a section, runs shown instead of the chosen ones, a note on those left out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from workbench.app import url_state
from workbench.app.components import empty_states
from workbench.app.frame import Frame, escape_markdown
from workbench.app.url_state import ViewState
from workbench.store.runs import Run, RunError, short_names

_MOST_SHOWN = 6  # number of compatible runs that are shown instead of the chosen ones


def read_old_label(key: str, options: Mapping[str, str]) -> None:
    """Choose the option that an old link names by its former label."""
    requested = st.query_params.get(key, "")
    if key not in st.session_state and requested in options:
        st.session_state[key] = options[requested]


def choose(column, parts: Mapping[str, str], key: str) -> str:
    """A control that selects the shown section of a page, by default the first."""
    return column.segmented_control(
        "Show", list(parts), format_func=parts.__getitem__, default=next(iter(parts)), required=True, key=key,
        bind="query-params",
    )  # fmt: skip


def compatible(
    frame: Frame,
    predicate: str,
    is_compatible: Callable[[Run], bool],
    system: str,
    changes: str = "",
    settings: str = "",
    reason: str = "",
) -> tuple[Frame, list[Run]]:
    """The frame and its compatible runs; others instead, said so, if no chosen run is compatible.

    Without any, show how to train one and stop the page.
    predicate: what a compatible run does, as a verb phrase. system: the system to train. changes: its settings in the
    command, from the colon on. settings: further words of that command. reason: a sentence on the reason for them.
    """
    if runs := list(filter(is_compatible, frame.tested)):
        return frame, runs
    untranslated = [run for run in frame.chosen if run not in frame.tested and is_compatible(run)]
    if untranslated:
        test = shlex.quote(frame.view.test)
        empty_states.empty_state_of_runs(
            f"None of the chosen runs that have translated {frame.view.test!r} {predicate}. Translate it:",
            untranslated,
            f"workbench translate {{}} --test {test} --save-beams",
        )
        st.stop()
    elif others := _others_instead(frame, predicate, is_compatible):
        return others, list(others.tested)
    root = shlex.quote(str(frame.root))
    train = f"workbench train {system}{changes} --data DATA --out {root}/{system} {settings}".rstrip()
    how = "Add one to the demo, or train one on the data of a run that is there:"
    empty_states.empty_state(
        " ".join(filter(None, (f"None of the chosen runs {predicate}, nor does any other run here.", reason, how))),
        f"workbench demo {system} --runs {root}\n{train}",
    )
    st.stop()
    return frame, []


def any_compatible(frame: Frame, predicate: str, is_compatible: Callable[[Run], bool]) -> Frame:
    """The frame, or one of compatible runs instead, said so, if no chosen run is compatible but others are."""
    if any(_is_usable(run, is_compatible) for run in frame.chosen):
        return frame
    return _others_instead(frame, predicate, is_compatible) or frame


def _others_instead(frame: Frame, predicate: str, is_compatible: Callable[[Run], bool]) -> Frame | None:
    """A frame of compatible runs that are not chosen, below a sentence that names them; None if there are none."""
    runs = _others(frame, is_compatible)
    if not runs:
        return None
    names = [run.name for run in runs]
    joined = _same_texts(frame, runs[0])
    choice = url_state.with_more(frame.view.runs, names) if joined else names
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.text(f"None of the chosen runs {predicate}. Shown instead: {', '.join(map(_named, runs))}.")
        label = f"{'Add' if joined else 'Choose'} {'it' if len(runs) == 1 else 'them'}"
        st.button(label, key="choose-instead", on_click=_choose_runs, args=(choice,))
    test = frame.view.test if frame.view.test in runs[0].tests() else next(iter(runs[0].tests()), "")
    shown = [run.name for run in runs if test in run.tests()]
    count = url_state.sentences(shown, test, frame.known)
    view = ViewState(tuple(shown), test, min(frame.view.sentence, max(0, count - 1)), shown[0])
    return replace(frame, view=view)


def _named(run: Run) -> str:
    return run.name if run.finished else f"{run.name}, whose training has not ended"


def _others(frame: Frame, is_compatible: Callable[[Run], bool]) -> list[Run]:
    """The compatible runs with translations that are not chosen, all of one folder, finished ones and baselines first.

    A folder of chosen runs is preferred.
    """
    folders = {url_state.folder_of(run.name) for run in frame.chosen}
    others = [run for run in frame.runs if not run.problem and run not in frame.chosen and run.tests()]
    compatible_runs = [run for run in others if _is_usable(run, is_compatible)]
    compatible_runs.sort(
        key=lambda run: (
            url_state.folder_of(run.name) not in folders, not run.finished, url_state.baseline_rank(run.name)
        )
    )  # fmt: skip
    same_folder = [
        run for run in compatible_runs if url_state.folder_of(run.name) == url_state.folder_of(compatible_runs[0].name)
    ]
    return same_folder[:_MOST_SHOWN]


def _is_usable(run: Run, is_compatible: Callable[[Run], bool]) -> bool:
    """Return True for a compatible run; False too for a run that cannot be read, which must not stop the page."""
    with suppress(ValueError, OSError):
        return is_compatible(run)
    return False


def _same_texts(frame: Frame, run: Run) -> bool:
    """Return True if a run has translated the same test set as the chosen runs, as far as is known."""
    test = frame.view.test
    if not frame.tested or test not in run.tests():
        return url_state.folder_of(run.name) in {url_state.folder_of(compared.name) for compared in frame.chosen}
    with suppress(RunError):
        shown, sources = (compared.translations(test).test_set.sources for compared in (frame.tested[0], run))
        return shown == sources
    return False


def _choose_runs(runs: list[str]) -> None:
    st.session_state["runs"] = runs


def left_out(frame: Frame, shown_runs: Sequence[Run], what: str) -> None:
    """Name the chosen runs that are not shown for lack of something; nothing if all are shown."""
    names = short_names(frame.tested)
    others = [names[run.name] for run in frame.tested if run not in shown_runs]
    if others:
        st.caption(escape_markdown(f"Without {what}: {', '.join(others)}."))
