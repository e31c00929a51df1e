"""What stands around every page: the selectors in the sidebar, texts shown as typed, errors and empty states.

The widgets of the sidebar are bound to the query string by Streamlit; what of it can be had is decided in `view`.
Pages ask `current()`; nothing here imports torch or draws.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from workbench.app import url_state as views
from workbench.app.components import job_view, page_width, stepper
from workbench.app.pages import PAGES
from workbench.app.url_state import ViewState
from workbench.figures.request import Request
from workbench.jobs import allowed_commands, queue
from workbench.store.listing import Known, listing
from workbench.store.runs import Run, RunError, runs_folder, short_names

_FRAME = "_frame"
NAMING_RUNS = ("New study", "Results")  # parts of the page Human rating; all others are for raters
# Streamlit leaves 5rem on either side of any page, and lets a row of choices scroll under its edge.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding-left: clamp(1rem, 3vw, 5rem); padding-right: clamp(1rem, 3vw, 5rem)}
[data-testid="stButtonGroup"] > div:has(> [data-variant]) {flex-wrap: wrap; mask-image: none}
[data-testid="stButtonGroup"] [data-variant] {max-width: 100%}
</style>"""
PREVIOUS_KEY, NEXT_KEY = "p", "n"


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


def choose(blind: bool = False) -> Frame:
    """Draw the sidebar and remember what it says for the page. blind: name no run, neither there nor in the URL."""
    root = runs_folder()
    found = listing(root)
    view = _hidden() if blind else _chosen(root, found.known)
    st.html(_STYLE)
    page_width.measure()
    st.session_state[_FRAME] = Frame(root, found.runs, found.known, view)
    return st.session_state[_FRAME]


def rates_blind() -> bool:
    """Does the page Human rating show translations to a rater, who is to know of no run?"""
    from workbench.store.rating_studies import studies  # which takes pandas

    part = st.session_state.get("rating") or st.query_params.get("rating")
    return part not in NAMING_RUNS and bool(studies(runs_folder()))


def _hidden() -> ViewState:
    st.caption("What is chosen here is hidden while translations are rated blind.")
    for key in ("runs", "baseline"):
        with suppress(KeyError, StreamlitAPIException):  # of a box drawn before Streamlit removes it by itself
            del st.query_params[key]
    return ViewState()


def _chosen(root: Path, usable: Sequence[Known]) -> ViewState:
    """What is chosen in the sidebar, below a sentence for all that was asked for and cannot be had."""
    _, warnings = views.from_query({name: st.query_params.get_all(name) for name in st.query_params}, usable)
    names = [run.name for run in usable]
    gone = [name for name in st.session_state.get("runs", ()) if name not in names]
    warnings += [f"{name} is no longer below {root}: it was moved or removed." for name in gone]
    for warning in warnings:
        st.warning(as_typed(warning))
    return _selectors(list(usable)) if usable else ViewState()


def whole_number_bind(name: str) -> Literal["query-params"] | None:
    """Binds a box for whole numbers to the URL, but not to a number without end there: Streamlit would fail on it."""
    return None if any(map(views.endless, st.query_params.get_all(name))) else "query-params"


def _selectors(usable: list[Known]) -> ViewState:
    names = [run.name for run in usable]
    _keep("runs", lambda chosen: [name for name in chosen if name in names])
    runs = st.multiselect(
        "Runs",
        names,
        default=views.default_runs(usable),
        max_selections=views.MOST_RUNS,
        help=f"At most {views.MOST_RUNS}. Unless told, finished runs of the first experiment.",
        key="runs",
        bind="query-params",
    )
    if unfinished := [run.name for run in usable if run.name in runs and not run.finished]:
        st.caption(as_typed(f"Training has not ended: {', '.join(unfinished)}."))
    tests = views.tests(runs, usable)
    if not tests:
        first = next(iter(views.baselines(runs, "", usable)), "")
        return ViewState(views.baseline_first(runs, first), baseline=first)
    _keep("test", lambda test: test if test in tests else tests[0])
    test = st.selectbox("Test set", tests, key="test", bind="query-params")
    options = views.baselines(runs, test, usable)
    _keep("baseline", lambda name: name if name in options else options[0])
    baseline = st.selectbox("Baseline", options, key="baseline", bind="query-params")
    return ViewState(
        views.baseline_first(runs, baseline), test, _sentence(views.sentences(runs, test, usable)), baseline
    )


def _sentence(count: int) -> int:
    last = max(0, count - 1)
    _keep("sentence", lambda number: min(number, last))
    bind = whole_number_bind("sentence")
    number = int(st.number_input(f"Sentence (0 to {last})", 0, last, key="sentence", bind=bind))
    with st.container(horizontal=True):
        stepper.show(number, last, ("Previous", "Next"), partial(_step, last), "sentence", (PREVIOUS_KEY, NEXT_KEY))
        st.button("Surprise me", on_click=_go_elsewhere, args=(count,), disabled=last == 0, key="surprise")
    return number


def _step(last: int, by: int) -> None:
    stepper.put("sentence", min(max(0, st.session_state["sentence"] + by), last))


def _go_elsewhere(count: int) -> None:
    stepper.put("sentence", views.elsewhere(st.session_state["sentence"], count))


def _keep(key: str, valid) -> None:
    """Bring a remembered choice back to what there still is: runs and test sets come and go."""
    if key in st.session_state:
        kept = valid(st.session_state[key])
        if kept != st.session_state[key]:
            st.session_state[key] = kept


def page_file(name: str) -> Path:
    """The file of a page, for links."""
    return PAGES[name].file


def as_typed(text: str) -> str:
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
        st.error(as_typed(f"{message}:"))
        st.code(f"workbench {command}", language="bash", wrap_lines=True)
    else:
        st.error(as_typed(str(error)))


@contextmanager
def sentences_for_errors() -> Iterator[None]:
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


def empty(said: str, command: str | None = None) -> None:
    """What is missing on this page, and the commands that make it, a line each; those that are whole can be run."""
    with st.container(border=True):
        st.text(said)
        if command:
            st.code(command, language="bash", wrap_lines=True)
            _run_now(command.splitlines())


def _run_now(commands: Sequence[str]) -> None:
    root = current().root
    able = [arguments for line in commands if (arguments := allowed_commands.read(line, root))]
    with sentences_for_errors():
        for arguments in able:
            label = "Run now" if len(able) == 1 else f"Run now: {as_typed(queue.title_of(arguments))}"
            job_view.offer(root, arguments, label)
    if able:
        st.page_link(page_file("jobs"), label="All jobs", icon=":material/arrow_forward:")


def empty_runs(said: str, runs: Sequence[Run], command: str) -> None:
    """What is missing of runs, and the command that makes it for each, `{}` its folder; an outside run has none."""
    able = [run for run in runs if not run.outside]
    if able:
        empty(said, "\n".join(command.replace("{}", run.typed) for run in able))
    elsewhere = [run.name for run in runs if run.outside]
    if elsewhere:
        empty(
            f"Translated elsewhere: {', '.join(elsewhere)}. Only the texts are known, there is no model that could "
            "make what this page shows."
        )


def needs_runs(fewest: int = 1, translated: bool = True) -> Frame:
    """The frame, where it holds enough runs for a page; else the page says what is missing and ends."""
    frame = current()
    if not frame.known:
        empty(
            "There is no run here yet. Build the demo on the page Start, or on the command line:",
            shlex.join(["workbench", "demo", "--runs", str(frame.root)]),
        )
        st.stop()
    if len(frame.chosen) < fewest:
        empty(f"Choose {'a run' if fewest == 1 else f'at least {fewest} runs'} in the sidebar.")
        st.stop()
    if translated and len(frame.tested) < fewest:
        waiting = [run for run in frame.chosen if run not in frame.tested]
        test = frame.view.test or next((name for run in waiting for name in run.translated()), "test")
        empty_runs(
            f"This page needs {fewest} of the chosen runs to have translated the test set {test!r} with the weights "
            "that they have now. Translate it:",
            waiting,
            f"workbench translate {{}} --test {shlex.quote(test)} --trees",
        )
        st.stop()
    if translated:
        _say_empty_outputs(frame)
    return frame


def _say_empty_outputs(frame: Frame) -> None:
    """Systems that wrote nothing for some sentences: scores, buckets and lists count these outputs as they are."""
    said = []
    for run in frame.tested:
        written = (run.translations_folder(frame.view.test) / "meta.json").stat().st_mtime
        empty_ones, sentences = _empty_outputs(run.reference, frame.view.test, written, run)
        if empty_ones:
            said.append(f"{short_names(frame.tested)[run.name]} {empty_ones} of {sentences}")
    if said:
        st.caption(as_typed(f"Empty outputs: {', '.join(said)}."))


@st.cache_data(max_entries=64, show_spinner=False)
def _empty_outputs(reference: str, test: str, written: float, _run: Run) -> tuple[int, int]:
    """How many outputs are empty, and how many there are; none of translations that cannot be read."""
    with suppress(RunError):
        lines = _run.translations(test).hypotheses
        return sum(not line.strip() for line in lines), len(lines)
    return 0, 0
