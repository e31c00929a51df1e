"""Table of all jobs, refreshed every second, and the selected job with its log and buttons."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from workbench.app.components import job_view
from workbench.app.frame import errors_as_messages, escape_markdown
from workbench.jobs import queue as jobs
from workbench.jobs.queue import Job

_CHOSEN = "job"
_COLUMNS = {
    "title": st.column_config.TextColumn("Job", width=300),
    "state": st.column_config.TextColumn("State", width="small"),
    "progress": st.column_config.ProgressColumn("Done", format="percent", min_value=0.0, max_value=1.0, width="small"),
    "started": st.column_config.TextColumn("Started", width=140),
    "lasted": st.column_config.TextColumn("Duration", width=100),
    "line": st.column_config.TextColumn("Last line", width="large"),
    "command": st.column_config.TextColumn("Command", width="large"),
}
_MOST_ROWS, _MOST_LINES = 8, 16  # of table and log, before they scroll


@st.fragment(run_every=1)
def show(root: Path, first: Sequence[str]) -> None:
    """Table of jobs and the selected job (default: the newest); without jobs a command to begin with."""
    jobs.start_waiting(root)
    listed = [(job, job.state) for job in jobs.list_jobs(root)]
    if not listed:
        _begin_with(root, first)
        return
    queue = [job.folder for job, state in reversed(listed) if state == jobs.WAITING]
    names = [job.folder.name for job, _ in listed]
    selected = names.index(st.session_state[_CHOSEN]) if st.session_state.get(_CHOSEN) in names else 0
    key = "jobs-" + hashlib.sha256(repr(names).encode()).hexdigest()[:16]  # other rows are another table
    st.dataframe(
        [_row(job, state, queue) for job, state in listed],
        hide_index=True,
        column_config=_COLUMNS,
        height="content" if len(listed) <= _MOST_ROWS else 38 + 35 * _MOST_ROWS,
        key=key,
        placeholder="",
        on_select=lambda: _select(key, names),
        selection_mode="single-row",
        selection_default={"selection": {"rows": [selected]}},
        alt="Jobs with their state; select one to read its log",
    )
    if any(state not in jobs.ACTIVE for _, state in listed):
        st.button("Clear finished", on_click=jobs.clear, args=(root,), icon=":material/clear_all:")
    _show_job(*listed[selected])


def _begin_with(root: Path, arguments: Sequence[str]) -> None:
    with st.container(border=True):
        st.text(
            "No job was started here yet. A page that lacks something offers the command that makes it. To begin with:"
        )
        st.code(shlex.join(["workbench", *arguments]), language="bash", wrap_lines=True)
        with errors_as_messages():
            job_view.offer(root, arguments)


def _row(job: Job, state: str, queue: Sequence[Path]) -> dict[str, object]:
    return {
        "title": job.title,
        "state": state,
        "progress": 1.0 if state == jobs.DONE else job.progress,
        "started": time.strftime("%Y-%m-%d %H:%M", time.localtime(job.started)) if job.process else "",
        "lasted": lasted((time.time() if state in jobs.ACTIVE else job.ended) - job.started) if job.process else "",
        "line": f"number {queue.index(job.folder) + 1} in the queue" if job.folder in queue else job.last_line,
        "command": job.command,
    }


def lasted(seconds: float) -> str:
    """Duration as text: 8 s, 3 min 20 s, 2 h 5 min."""
    minutes, remainder = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {remainder} s" if minutes else f"{remainder} s"


def _select(key: str, names: list[str]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.session_state[_CHOSEN] = names[rows[0]]


def _show_job(job: Job, state: str) -> None:
    st.subheader(escape_markdown(job.title))
    st.text(job_view.status_text(job, state))
    st.code(job.command, language="bash", wrap_lines=True)
    if state in jobs.ACTIVE:
        job_view.show_progress(job, state)
    elif state in jobs.UNFINISHED and st.button("Restart", icon=":material/replay:", key="start-again"):
        with errors_as_messages():
            st.session_state[_CHOSEN] = jobs.restart(job).folder.name
            st.rerun()
    log = job.log.strip() or "(no output yet)"
    height = "content" if log.count("\n") < _MOST_LINES else 24 * _MOST_LINES
    st.code(log, language=None, wrap_lines=True, height=height)
    st.caption(escape_markdown(f"The end of {job.folder / 'log.txt'}"))
