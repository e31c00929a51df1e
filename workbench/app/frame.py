"""Common parts of all pages: the selection of the sidebar, headings, escaped texts, error messages.

Pages call `current()`. Nothing here imports torch or draws.
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
    """The selection of the sidebar: all runs below `root`, and the chosen ones, the baseline first."""

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
        """The request for a figure of the chosen runs (or of some of them) at the chosen sentence."""
        shown = tuple(self.tested if runs is None else runs)
        palette_runs = self.chosen if shown and set(shown) != set(self.chosen) else ()
        return Request(shown, self.view.test, self.view.sentence, options=dict(options), palette_runs=palette_runs)


def current() -> Frame:
    """The frame of this rerun."""
    return st.session_state[_FRAME]


def keep(frame: Frame) -> Frame:
    """Keep the sidebar's selection for the page of this rerun."""
    st.session_state[_FRAME] = frame
    return frame


def page_file(name: str) -> Path:
    """The file of a page, for links."""
    return PAGES[name].file


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown, so that it shows as typed."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def heading(title: str, description: str) -> None:
    """Show the title of a page and one sentence on its content."""
    st.title(title)
    st.caption(description)


def show_error(error: Exception) -> None:
    """Show an error message, with its command to copy."""
    message, sign, command = str(error).rpartition(": workbench ")  # a path may have the word in it
    if sign and "\n" not in command:
        st.error(escape_markdown(f"{message}:"))
        st.code(f"workbench {command}", language="bash", wrap_lines=True)
    else:
        st.error(escape_markdown(str(error)))


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Show errors of runs, configurations, texts, checkpoints, searches, fonts (all ValueErrors) and files as messages.

    They are raised if WORKBENCH_DEBUG is set.
    """
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
