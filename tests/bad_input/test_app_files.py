"""The app while files go away or cannot be written, a job is killed, and two tabs look at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workbench.jobs.held_jobs import held, prepare
from tests.workbench.views.app_pages import charts, codes, open_page, texts
from workbench.jobs import queue, state_folder

SECONDS = 60.0


@pytest.fixture
def shown(run, monkeypatch) -> Path:
    """The runs folder that the app shows: two runs, `one` and `two`."""
    shutil.copytree(run, run.with_name("two"))
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    return run.parent


@pytest.mark.parametrize("page", ["sentences", "curves"])
def test_a_run_that_is_removed_while_it_is_shown(shown, page):
    at = open_page(page, runs=["one", "two"])
    shutil.rmtree(shown / "two")
    at.run()
    assert not at.exception
    assert at.sidebar.multiselect(key="runs").value == ["one"]
    assert any(
        f"two is no longer below {shown}: it was moved or removed" in warning.value.replace("\\", "")
        for warning in at.warning
    )
    shutil.rmtree(shown / "one")
    at.run()
    assert not at.exception
    assert f"workbench demo --runs {shown}" in codes(at)


@pytest.mark.parametrize(
    ("page", "name"), [("scores", "hypotheses.txt"), ("adequacy", "hypotheses.txt"), ("attention", "sources.txt")]
)
def test_a_file_that_is_gone_is_named(shown, page, name):
    shutil.rmtree(shown / "two")
    run = f"{page} without {name}"  # of its own: what was shown of a run once is kept in memory
    missing = (shown / "one").rename(shown / run) / "translations" / "test" / name
    missing.unlink()
    at = open_page(page, runs=[run])
    said = [error.value.replace("\\", "") for error in at.error]
    assert any(f"{missing} is missing; bring it back, or translate the test set again" in text for text in said), said


@pytest.fixture
def read_only(shown):
    """The runs folder where nothing can be written; for root, whom permissions do not bind, by a mount."""
    if os.geteuid() != 0:
        folders = [shown, *(path for path in shown.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        yield shown
        for folder in folders:
            folder.chmod(0o755)
        return
    bound = subprocess.run(["mount", "--bind", shown, shown], capture_output=True, text=True)
    if bound.returncode:
        pytest.skip(f"root can write everywhere, and nothing may be mounted here: {bound.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", shown], check=True)
        yield shown
    finally:
        subprocess.run(["umount", shown], check=True)


def test_runs_that_may_only_be_read_are_shown_and_what_cannot_be_written_is_said(read_only):
    for page in ("scores", "adequacy"):
        at = open_page(page, runs=["one", "two"])
        assert not at.error, (page, [error.value for error in at.error])
        assert charts(at), page


def test_a_folder_for_jobs_that_cannot_be_made_is_said(shown, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(state_folder.HOME, str(tmp_path / "file"))
    at = open_page("start")
    next(button for button in at.button if button.label == "Build the demo").click().run()
    assert not at.exception
    said = at.error[0].value.replace("\\", "")
    assert str(tmp_path / "file") in said
    assert "no job can be started" in said
    assert "make it writable, or name another one in XDG_STATE_HOME" in said


def test_a_job_that_is_killed_is_said_to_be_lost_and_can_be_started_again(tmp_path, monkeypatch):
    root = prepare(tmp_path, monkeypatch)
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    command = held(root, "run")
    job = queue.start(root, command)
    os.killpg(job.process, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while job.state == queue.RUNNING and time.monotonic() < deadline:
        time.sleep(0.02)
    at = open_page("jobs")
    assert at.dataframe[0].value["state"].tolist() == ["lost"]
    assert any(text.startswith("Lost: its process is gone without a result") for text in texts(at))
    at.button(key="start-again").click().run()
    assert at.dataframe[0].value["command"].tolist() == [job.command] * 2
    newest = queue.list_jobs(root)[0]
    assert newest.folder != job.folder
    newest.cancel()


def test_two_tabs_on_the_same_runs_do_not_disturb_each_other(shown):
    first = open_page("scores", runs=["one", "two"], baseline="one", sentence="0")
    second = open_page("scores", runs=["two"], sentence="1")
    first.sidebar.selectbox(key="baseline").set_value("two").run()
    second.sidebar.number_input(key="sentence").set_value(0).run()
    assert second.sidebar.multiselect(key="runs").value == ["two"]
    assert first.run().sidebar.multiselect(key="runs").value == ["one", "two"]
    assert first.sidebar.selectbox(key="baseline").value == "two"
    assert {trace["name"] for trace in charts(second)[0]["data"] if trace.get("showlegend")} <= {"two"}


def test_two_tabs_start_a_job_once(shown):
    first, second = open_page("start"), open_page("start")
    for tab in (first, second):  # the second has the button yet: it was drawn before the first was pressed
        next(button for button in tab.button if button.label == "Build the demo").click().run()
        assert not tab.exception
    (job,) = queue.list_jobs(shown)
    assert "Cancel" in [button.label for button in second.button]
    job.cancel()
