"""What pages of several parts begin and end with: the choice of a part, what makes a run that they could show, and a
line on the chosen runs that they do not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import streamlit as st

from workbench import drawing, frame
from workbench.runs import Run


def choose(place, parts: Mapping[str, str], key: str) -> str:
    """Which part of a page is shown, the first unless told."""
    return place.segmented_control(
        "Show", list(parts), format_func=parts.__getitem__, default=next(iter(parts)), required=True, key=key,
        bind="query-params",
    )  # fmt: skip


def none_able(
    here: frame.Frame, said: str, system: str, changes: str = "", settings: str = "", reason: str = ""
) -> None:
    """Says that no chosen run has what a page shows (`said`), how to make one of a system, and ends the page.

    changes: of the system where it is trained, from the colon on; settings: further words of that command, and the
    reason for them, a sentence.
    """
    root = shlex.quote(str(here.root))
    train = f"workbench train {system}{changes} --data DATA --out {root}/{system} {settings}".rstrip()
    how = "Choose one, add one to the demo, or train one on the data of a run that is there:"
    frame.empty(
        " ".join(filter(None, (f"None of the chosen runs {said}.", reason, how))),
        f"workbench demo {system} --runs {root}\n{train}",
    )
    st.stop()


def left_out(here: frame.Frame, able: Sequence[Run], what: str) -> None:
    """Which of the chosen runs are not shown, being without something; nothing where all are."""
    names = drawing.short_names(here.tested)
    others = [names[run.name] for run in here.tested if run not in able]
    if others:
        st.caption(frame.as_typed(f"Without {what}: {', '.join(others)}."))
