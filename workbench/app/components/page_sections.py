"""Common parts of pages: the choice of a section, offers of compatible runs, and a note on runs that are not shown."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import streamlit as st

from workbench.app import url_state
from workbench.app.components import empty_states
from workbench.app.frame import Frame, escape_markdown
from workbench.store.runs import Run, RunError, short_names

_MOST_OFFERED = 6  # number of compatible runs that are offered


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


def none_able(
    frame: Frame,
    predicate: str,
    is_compatible: Callable[[Run], bool],
    system: str,
    changes: str = "",
    settings: str = "",
    reason: str = "",
) -> None:
    """Say that no chosen run can be shown and offer compatible runs; without any, show how to train one.

    predicate: what no chosen run does, as a verb phrase. system: the system to train. changes: its settings in the
    command, from the colon on. settings: further words of that command. reason: a sentence on the reason for them.
    """
    untranslated = [run for run in frame.chosen if run not in frame.tested and is_compatible(run)]
    if untranslated:
        test = shlex.quote(frame.view.test)
        empty_states.empty_state_of_runs(
            f"None of the chosen runs that have translated {frame.view.test!r} {predicate}. Translate it:",
            untranslated,
            f"workbench translate {{}} --test {test} --save-beams",
        )
        return
    if offer_others(frame, predicate, is_compatible):
        return
    root = shlex.quote(str(frame.root))
    train = f"workbench train {system}{changes} --data DATA --out {root}/{system} {settings}".rstrip()
    how = "Add one to the demo, or train one on the data of a run that is there:"
    empty_states.empty_state(
        " ".join(filter(None, (f"None of the chosen runs {predicate}, nor does any other run here.", reason, how))),
        f"workbench demo {system} --runs {root}\n{train}",
    )


def offer_others(frame: Frame, predicate: str, is_compatible: Callable[[Run], bool]) -> bool:
    """Offer compatible runs that are not chosen, with a button for each; returns False if there are none."""
    runs = _others(frame, is_compatible)
    if not runs:
        return False
    names = ", ".join(run.name for run in runs)
    with st.container(border=True):
        st.text(f"None of the chosen runs {predicate}. Of the runs that are not chosen {names} {_verb(runs)}:")
        for run in runs:
            _offer(frame, run)
    return True


def _verb(runs: Sequence[Run]) -> str:
    return "does" if len(runs) == 1 else "do"


def _others(frame: Frame, is_compatible: Callable[[Run], bool]) -> list[Run]:
    """The compatible runs that are not chosen, finished ones first.

    Runs in the folders of the chosen ones come alone, unless these folders have none.
    """
    folders = {url_state.folder_of(run.name) for run in frame.chosen}
    others = [run for run in frame.runs if not run.problem and run not in frame.chosen]
    same_folder = [run for run in others if url_state.folder_of(run.name) in folders and _is_usable(run, is_compatible)]
    compatible_runs = same_folder or [
        run for run in others if url_state.folder_of(run.name) not in folders and _is_usable(run, is_compatible)
    ]
    return sorted(compatible_runs, key=lambda run: not run.finished)[:_MOST_OFFERED]


def _is_usable(run: Run, is_compatible: Callable[[Run], bool]) -> bool:
    """Return True for a compatible run; False too for a run that cannot be read, which must not stop the page."""
    with suppress(ValueError, OSError):
        return is_compatible(run)
    return False


def _offer(frame: Frame, run: Run) -> None:
    """A button that adds a run to the chosen ones, or shows it alone if they translate other texts."""
    ended = "" if run.finished else ", whose training has not ended"
    if _same_texts(frame, run):
        runs, gives_way = url_state.with_run(frame.view.runs, frame.view.baseline, run.name)
        label = f"Add {run.name}{ended}" + (f" (in place of {gives_way})" if gives_way else "")
    else:
        runs, label = [run.name], f"Show {run.name}{ended} alone"
    st.button(escape_markdown(label), key=f"offer-{run.name}", on_click=_choose_runs, args=(runs,))


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
