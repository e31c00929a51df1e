"""What pages of several parts begin and end with: the choice of a part, what makes a run that they could show, and a
line on the chosen runs that they do not."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import streamlit as st

from workbench.app import frame, url_state
from workbench.app.components import empty_states
from workbench.store.runs import Run, RunError, short_names

_MOST_OFFERED = 6  # runs that have what the chosen ones lack


def read_old_label(key: str, options: Mapping[str, str]) -> None:
    """Choose the option that a link made before names by the label it had then."""
    asked = st.query_params.get(key, "")
    if key not in st.session_state and asked in options:
        st.session_state[key] = options[asked]


def choose(place, parts: Mapping[str, str], key: str) -> str:
    """Which part of a page is shown, the first unless told."""
    return place.segmented_control(
        "Show", list(parts), format_func=parts.__getitem__, default=next(iter(parts)), required=True, key=key,
        bind="query-params",
    )  # fmt: skip


def none_able(
    here: frame.Frame,
    said: str,
    able: Callable[[Run], bool],
    system: str,
    changes: str = "",
    settings: str = "",
    reason: str = "",
) -> None:
    """Says that no chosen run has what is to be shown (`said`), and offers those that have (`able`); where there is
    none, how to make one of a system.

    changes: of the system where it is trained, from the colon on; settings: further words of that command, and the
    reason for them, a sentence.
    """
    untranslated = [run for run in here.chosen if run not in here.tested and able(run)]
    if untranslated:
        test = shlex.quote(here.view.test)
        empty_states.empty_state_of_runs(
            f"None of the chosen runs that have translated {here.view.test!r} {said}. Translate it:",
            untranslated,
            f"workbench translate {{}} --test {test} --save-beams",
        )
        return
    if offer_others(here, said, able):
        return
    root = shlex.quote(str(here.root))
    train = f"workbench train {system}{changes} --data DATA --out {root}/{system} {settings}".rstrip()
    how = "Add one to the demo, or train one on the data of a run that is there:"
    empty_states.empty_state(
        " ".join(filter(None, (f"None of the chosen runs {said}, nor does any other run here.", reason, how))),
        f"workbench demo {system} --runs {root}\n{train}",
    )


def offer_others(here: frame.Frame, said: str, able: Callable[[Run], bool]) -> bool:
    """Names the runs that are not chosen and have what the chosen ones lack (`said`), a button for each that shows it;
    False where there is none."""
    found = _others(here, able)
    if not found:
        return False
    names = ", ".join(run.name for run in found)
    with st.container(border=True):
        st.text(f"None of the chosen runs {said}. Of the runs that are not chosen {names} {_verb(found)}:")
        for run in found:
            _offer(here, run)
    return True


def _verb(found: Sequence[Run]) -> str:
    return "does" if len(found) == 1 else "do"


def _others(here: frame.Frame, able: Callable[[Run], bool]) -> list[Run]:
    """The runs that are not chosen and are able, those in the folders of the chosen ones; of other folders where these
    have none. Finished ones first."""
    folders = {url_state.folder_of(run.name) for run in here.chosen}
    others = [run for run in here.runs if not run.problem and run not in here.chosen]
    near = [run for run in others if url_state.folder_of(run.name) in folders and _is(run, able)]
    found = near or [run for run in others if url_state.folder_of(run.name) not in folders and _is(run, able)]
    return sorted(found, key=lambda run: not run.finished)[:_MOST_OFFERED]


def _is(run: Run, able: Callable[[Run], bool]) -> bool:
    """A run that cannot be read is not able, and stops no page that does not show it."""
    with suppress(ValueError, OSError):
        return able(run)
    return False


def _offer(here: frame.Frame, run: Run) -> None:
    """A button that adds a run to the chosen ones, or shows it alone where they translate other texts."""
    ended = "" if run.finished else ", whose training has not ended"
    if _same_texts(here, run):
        runs, gives_way = url_state.with_run(here.view.runs, here.view.baseline, run.name)
        label = f"Add {run.name}{ended}" + (f" (in place of {gives_way})" if gives_way else "")
    else:
        runs, label = [run.name], f"Show {run.name}{ended} alone"
    st.button(frame.escape_markdown(label), key=f"offer-{run.name}", on_click=_choose_runs, args=(runs,))


def _same_texts(here: frame.Frame, run: Run) -> bool:
    """Does it translate the chosen test set of the chosen runs, as far as is known?"""
    test = here.view.test
    if not here.tested or test not in run.tests():
        return url_state.folder_of(run.name) in {url_state.folder_of(one.name) for one in here.chosen}
    with suppress(RunError):
        shown, own = (one.translations(test).test_set.sources for one in (here.tested[0], run))
        return shown == own
    return False


def _choose_runs(runs: list[str]) -> None:
    st.session_state["runs"] = runs


def left_out(here: frame.Frame, able: Sequence[Run], what: str) -> None:
    """Which of the chosen runs are not shown, being without something; nothing where all are."""
    names = short_names(here.tested)
    others = [names[run.name] for run in here.tested if run not in able]
    if others:
        st.caption(frame.escape_markdown(f"Without {what}: {', '.join(others)}."))
