"""One command on a page: a button that starts it as a job, its progress, and a button that ends it.

The job is a process of its own; this module only reads its folder, so the job survives a reload of the page. Knows no
page: empty states offer commands with it, the page Jobs shows all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from workbench.jobs import queue
from workbench.jobs.queue import Job
from workbench.store import read_only

_GOES_ON = "Start it again: training and the demo go on where they stopped, other work begins anew."
WHAT_TO_DO = {
    queue.RUNNING: "Running.",
    queue.ENDING: "Ending: it was cancelled and finishes what it is writing.",
    queue.DONE: "Done: it has ended well.",
    queue.FAILED: "Failed: mend what its last lines say, then start it again.",
    queue.CANCELLED: f"Cancelled. {_GOES_ON}",
    queue.LOST: f"Lost: its process is gone without a result, killed or by a restart of the machine. {_GOES_ON}",
}
_KILLED = f"Failed: it was killed from outside by signal {{}} (9 is also how a system frees memory). {_GOES_ON}"


def status_text(job: Job, state: str) -> str:
    """A sentence for the user on a state and what to do."""
    if state == queue.WAITING:
        return f"Waiting for its turn: number {job.position} in the queue."
    code = job.exit_code or 0
    return _KILLED.format(code - 128) if state == queue.FAILED and code > 128 else WHAT_TO_DO[state]


def offer(root: Path, arguments: Sequence[str], label: str = "Run now", title: str = "", main: bool = False) -> None:
    """A button that starts a command as a job, or the job of this command. Raises JobError if it cannot be started."""
    newest = queue.latest(root, arguments)
    if newest is not None and newest.state in queue.ACTIVE:
        _follow(root, tuple(arguments))
        return
    if newest is not None and (state := newest.state) in queue.UNFINISHED:
        st.text(f"The last time: {status_text(newest, state)}\n{newest.last_line}".rstrip())
    closed = read_only.active()
    key = f"run-{hashlib.sha256(repr(tuple(arguments)).encode()).hexdigest()[:16]}"
    kind = "primary" if main else "secondary"
    why = read_only.WHY if closed else None
    if st.button(label, type=kind, icon=":material/play_arrow:", key=key, disabled=closed, help=why):
        queue.start(root, arguments, title)
        st.rerun()


@st.fragment(run_every=1)
def _follow(root: Path, arguments: tuple[str, ...]) -> None:
    queue.start_waiting(root)
    job = queue.latest(root, arguments)
    state = job.state if job is not None else ""
    if job is None or state not in queue.ACTIVE:
        st.rerun(scope="app")
        return
    st.text(f"{job.title}: {status_text(job, state)}" if state == queue.WAITING else job.title)
    show_progress(job, state)


def show_progress(job: Job, state: str) -> None:
    """Progress and newest line of a job that has not ended, with a button to cancel it, also while it waits."""
    if state != queue.WAITING:
        share = job.progress
        if share is not None:
            st.progress(share)
        st.text(job.last_line or "Starting …")
    label = "End at once" if state == queue.ENDING else "Cancel"
    st.button(label, on_click=job.cancel, icon=":material/stop:", key=f"cancel-{job.folder.name}")
