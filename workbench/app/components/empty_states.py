"""Empty states of pages: what is missing, and the commands that create it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from workbench.app.components import job_view
from workbench.app.frame import Frame, current, errors_as_messages, escape_markdown, page_file
from workbench.jobs import allowed_commands, queue
from workbench.store.runs import Run, RunError, short_names


def empty_state(message: str, command: str | None = None) -> None:
    """Show what is missing on this page and the commands that create it, one per line; complete ones can be run."""
    with st.container(border=True):
        st.text(message)
        if command:
            st.code(command, language="bash", wrap_lines=True)
            _run_now(command.splitlines())


def _run_now(commands: Sequence[str]) -> None:
    root = current().root
    runnable = [arguments for line in commands if (arguments := allowed_commands.read(line, root))]
    with errors_as_messages():
        for arguments in runnable:
            label = "Run now" if len(runnable) == 1 else f"Run now: {escape_markdown(queue.title_of(arguments))}"
            job_view.offer(root, arguments, label)
    if runnable:
        st.page_link(page_file("jobs"), label="All jobs", icon=":material/arrow_forward:")


def empty_state_of_runs(message: str, runs: Sequence[Run], command: str) -> None:
    """Show what runs lack and the command for each, with `{}` for its folder; outside runs have no command."""
    model_runs = [run for run in runs if not run.outside]
    if model_runs:
        empty_state(message, "\n".join(command.replace("{}", run.typed) for run in model_runs))
    elsewhere = [run.name for run in runs if run.outside]
    if elsewhere:
        empty_state(
            f"Translated elsewhere: {', '.join(elsewhere)}. Only the texts are known, there is no model that could "
            "make what this page shows."
        )


def require_runs(fewest: int = 1, translated: bool = True) -> Frame:
    """The frame if it has enough runs for a page; otherwise say what is missing and stop the page."""
    frame = current()
    if not frame.known:
        empty_state(
            "There is no run here yet. Build the demo on the page Start, or on the command line:",
            shlex.join(["workbench", "demo", "--runs", str(frame.root)]),
        )
        st.stop()
    if len(frame.chosen) < fewest:
        empty_state(f"Choose {'a run' if fewest == 1 else f'at least {fewest} runs'} in the sidebar.")
        st.stop()
    if translated and len(frame.tested) < fewest:
        waiting = [run for run in frame.chosen if run not in frame.tested]
        test = frame.view.test or next((name for run in waiting for name in run.translated()), "test")
        empty_state_of_runs(
            f"This page needs {fewest} of the chosen runs to have translated the test set {test!r} with the weights "
            "that they have now. Translate it:",
            waiting,
            f"workbench translate {{}} --test {shlex.quote(test)} --save-beams",
        )
        st.stop()
    if translated:
        _say_empty_outputs(frame)
    return frame


def _say_empty_outputs(frame: Frame) -> None:
    """Name systems with empty outputs, which scores, buckets and lists count as they are."""
    counts = []
    for run in frame.tested:
        written = (run.translations_folder(frame.view.test) / "meta.json").stat().st_mtime
        empty_ones, sentences = _empty_outputs(run.reference, frame.view.test, written, run)
        if empty_ones:
            counts.append(f"{short_names(frame.tested)[run.name]} {empty_ones} of {sentences}")
    if counts:
        st.caption(escape_markdown(f"Empty outputs: {', '.join(counts)}."))


@st.cache_data(max_entries=64, show_spinner=False)
def _empty_outputs(reference: str, test: str, written: float, _run: Run) -> tuple[int, int]:
    """The numbers of empty and of all outputs; 0 for translations that cannot be read."""
    with suppress(RunError):
        lines = _run.translations(test).hypotheses
        return sum(not line.strip() for line in lines), len(lines)
    return 0, 0
