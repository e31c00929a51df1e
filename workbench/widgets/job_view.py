"""The demo's job on the page Start: a button that starts it, how far it is, its last words, and a way to end it.

The job is a process of its own; this only reads its folder, so a reload of the page finds it again.
"""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from workbench import demo, jobs
from workbench.frame import as_typed
from workbench.jobs import Job

NAME = "demo"


def demo_job(root: Path) -> None:
    """The button, or the job that was started with it."""
    found = [job for job in jobs.list_jobs(root / ".jobs") if job.folder.name.endswith(f"-{NAME}")]
    newest = found[0] if found else None
    if newest and newest.state == "running":
        _follow(root, newest.folder)
        return
    if newest and newest.state != "done":
        st.warning("The demo was not finished. Building goes on where it stopped.")
        with st.expander("Log"):
            st.code(newest.log[-4000:], language=None, wrap_lines=True)
    if demo.complete(root):
        st.text("The demo is built.")
        return
    if st.button("Build the demo", type="primary", icon=":material/play_arrow:"):
        root.mkdir(parents=True, exist_ok=True)
        jobs.start(root / ".jobs", "Demo", ["demo", "--runs", str(root)], NAME)
        st.rerun()
    st.code(f"workbench demo --runs {root}", language="bash")


@st.fragment(run_every=1)
def _follow(root: Path, folder: Path) -> None:
    job = next((job for job in jobs.list_jobs(root / ".jobs") if job.folder == folder), None)
    if job is None or job.state != "running":
        st.rerun(scope="app")
        return
    st.progress(progress(job), text=as_typed(job.last_line or "starting"))
    st.button("Cancel", on_click=job.cancel, icon=":material/stop:")


def progress(job: Job) -> float:
    """How much of the demo is done, from the newest line that says `done/total SYSTEM`; between 0 and 1."""
    lines = re.findall(rf"(\d+)/(\d+) ({'|'.join(map(re.escape, demo.SYSTEMS))})\b", job.log)
    if not lines:
        return 0.0
    done, total, system = lines[-1]
    return (demo.SYSTEMS.index(system) + int(done) / max(1, int(total))) / len(demo.SYSTEMS)
