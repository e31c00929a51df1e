"""What every page asks for: the runs and the sentence that the sidebar says, headings, texts as typed, errors.

Pages ask `current()`. Nothing here imports torch or draws.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from workbench.app.pages import PAGES
from workbench.app.url_state import ViewState
from workbench.figures.request import Request
from workbench.store.listing import Known
from workbench.store.runs import Run

_FRAME = "_frame"


@dataclass(frozen=True)
class Frame:
    """What the sidebar says: all runs below `root`, and those that are chosen, the baseline first."""

    root: Path
    runs: tuple[Run, ...]
    known: tuple[Known, ...]
    view: ViewState

    @property
    def chosen(self) -> tuple[Run, ...]:
        by_name = {run.name: run for run in self.runs}
        return tuple(by_name[name] for name in self.view.runs)

    @property
    def tested(self) -> tuple[Run, ...]:
        """The chosen runs that have translated the test set."""
        return tuple(run for run in self.chosen if self.view.test in run.tests())

    def request(self, runs: Sequence[Run] | None = None, **options: object) -> Request:
        """What to draw of the chosen runs (or of some of them) at the chosen sentence."""
        shown = tuple(self.tested if runs is None else runs)
        among = self.chosen if shown and set(shown) != set(self.chosen) else ()
        return Request(shown, self.view.test, self.view.sentence, options=dict(options), among=among)


def current() -> Frame:
    """The frame of this rerun."""
    return st.session_state[_FRAME]


def keep(frame: Frame) -> Frame:
    """Keep what the sidebar says, for the page of this rerun."""
    st.session_state[_FRAME] = frame
    return frame


def page_file(name: str) -> Path:
    """The file of a page, for links."""
    return PAGES[name].file


def escape_markdown(text: str) -> str:
    """A text for places that read Markdown, so that it shows as typed."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def heading(title: str, said: str) -> None:
    """The title of a page and one sentence on what it shows."""
    st.title(title)
    st.caption(said)


def show_error(error: Exception) -> None:
    """An error that is a sentence, with the command that helps to copy."""
    message, sign, command = str(error).rpartition(": workbench ")  # a path may have the word in it
    if sign and "\n" not in command:
        st.error(escape_markdown(f"{message}:"))
        st.code(f"workbench {command}", language="bash", wrap_lines=True)
    else:
        st.error(escape_markdown(str(error)))


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Errors of runs, configurations, texts, checkpoints, searches and fonts (all ValueErrors) become sentences, and so
    do those of files; not where WORKBENCH_DEBUG is set."""
    try:
        yield
    except ValueError as error:
        _shown_or_raised(error, error)
    except OSError as error:
        if error.filename is None:
            raise
        why = (error.strerror or str(error)).lower()
        advice = "check the path, its permissions and the disk; a run that was moved or removed is left out by a reload"
        _shown_or_raised(error, ValueError(f"{error.filename}: {why}; {advice}."))


def _shown_or_raised(error: Exception, sentence: Exception) -> None:
    if os.environ.get("WORKBENCH_DEBUG"):
        raise error
    show_error(sentence)
