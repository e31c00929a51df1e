"""Jobs wait for their turn: in the order in which they were asked for, begun once, whoever ends, looks or is killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from tests.workbench.jobs.held_jobs import held, let_go, prepare
from workbench import cli
from workbench.jobs import queue

SECONDS = 120.0  # a busy machine starts Python slowly


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch) -> Path:
    """A runs folder whose jobs run one at a time."""
    monkeypatch.delenv(queue.PARALLEL_JOBS, raising=False)
    return prepare(tmp_path, monkeypatch)


def _until(condition, *watched: queue.Job) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [(job.state, job.log) for job in watched]
        time.sleep(0.02)


def _ended(*watched: queue.Job) -> list[str]:
    _until(lambda: all(job.state not in queue.ACTIVE for job in watched), *watched)
    return [job.state for job in watched]


def _begun(job: queue.Job) -> bool:
    """Has its shell come to its command, and is that no longer a copy of the shell?"""
    with contextlib.suppress(psutil.Error):
        return any(child.cmdline()[:1] == [sys.executable] for child in psutil.Process(job.process).children())
    return False


def _group(job: queue.Job) -> list[psutil.Process]:
    """What is left of a job, what hands its turn on included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == job.process and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.slow
def test_one_runs_at_a_time_in_the_order_asked_for_and_nobody_need_look(root):
    first = queue.start(root, held(root, "pipe"))
    others = [queue.start(root, [name, "--help"]) for name in ("demo", "trace")]
    assert [job.state for job in (first, *others)] == ["running", "waiting", "waiting"]
    assert [job.position for job in (first, *others)] == [0, 1, 2]
    assert queue.start(root, ["trace", "--help"]).folder == others[1].folder, "what waits is not asked for twice"
    assert [job.process for job in others] == [0, 0]
    let_go(root, "pipe")
    assert _ended(first, *others) == ["failed", "done", "done"]
    second, third = (job.current for job in others)
    assert first.ended <= second.started <= second.ended <= third.started
    assert [job.folder for job in queue.list_jobs(root)] == [third.folder, second.folder, first.folder]


def test_a_job_that_waits_is_cancelled_without_having_run(root):
    first = queue.start(root, held(root, "pipe"))
    second, third = (queue.start(root, [name, "--help"]) for name in ("demo", "trace"))
    second.cancel()
    assert (second.state, third.state, third.position) == ("cancelled", "waiting", 1)
    let_go(root, "pipe")
    assert _ended(first, second, third) == ["failed", "cancelled", "done"]
    assert not (second.folder / "log.txt").exists()
    queue.clear(root)
    assert queue.list_jobs(root) == []


def test_a_cancelled_job_hands_its_turn_on(root):
    first = queue.start(root, held(root, "pipe"))
    second = queue.start(root, ["demo", "--help"])
    stale = second  # as a page holds it that was drawn while it waited
    _until(lambda: _begun(first), first)
    first.cancel()
    assert _ended(first, second) == ["cancelled", "done"]
    third = queue.start(root, held(root, "other"))
    stale.cancel()
    assert third.state == "running", "what has ended is not cancelled, nor is another"
    for _ in range(2):  # a second time: at once
        third.cancel()
    assert _ended(third) == ["cancelled"]


@pytest.mark.slow
def test_as_many_run_at_once_as_the_environment_says(root, monkeypatch):
    monkeypatch.setenv(queue.PARALLEL_JOBS, "2")
    three = [queue.start(root, held(root, name)) for name in ("one", "two", "three")]
    assert [job.state for job in three] == ["running", "running", "waiting"]
    let_go(root, "two")
    _until(lambda: three[2].state == "running", *three)
    assert three[0].state == "running"
    for name in ("one", "three"):
        let_go(root, name)
    assert _ended(*three) == ["failed"] * 3


def test_many_who_ask_and_look_at_the_same_moment_begin_one(root):
    commands = [held(root, f"pipe-{number}") for number in range(4)]

    def ask(arguments: tuple[str, ...]) -> queue.Job:
        asked = queue.start(root, arguments)
        queue.start_waiting(root)
        return asked

    script = (
        "import pathlib, sys; from workbench.jobs import queue; queue.start(pathlib.Path(sys.argv[1]), sys.argv[2:-1])"
    )
    with ThreadPoolExecutor(4) as tabs:
        other_app = subprocess.Popen([sys.executable, "-c", script, str(root), *commands[3], "asked"])
        asked = list(tabs.map(ask, [*commands[:3], *commands[:3]]))
    assert other_app.wait(SECONDS) == 0
    found = queue.list_jobs(root)
    assert len(found) == 4
    assert len({job.folder for job in asked}) == 3
    assert sorted(job.state for job in found) == ["running", "waiting", "waiting", "waiting"]
    for job in found:
        job.cancel()
    assert _ended(*found) == ["cancelled"] * 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_where_a_machine_goes_down_the_queue_waits_for_the_app(root, monkeypatch, number):
    """Everything is told to end, or killed: the next job is not begun for nothing, and the app goes on with it."""
    first = queue.start(root, held(root, "pipe"))
    second = queue.start(root, ["demo", "--help"])
    _until(lambda: _begun(first), first)
    os.killpg(first.process, number)
    assert _ended(first) == ["lost" if number == signal.SIGKILL else "failed"]
    _until(lambda: not _group(first), first)
    assert second.state == "waiting"

    def ended(app, config):
        raise SystemExit(queue.parallel_jobs())

    monkeypatch.setattr("streamlit.starlette.App.run", ended)
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(root), "--jobs", "3"])
    assert told.exit_code == 3, told.output
    assert _ended(second) == ["done"]


def test_what_cannot_be_kept_is_not_begun(root):
    first = queue.start(root, held(root, "pipe"))
    second = queue.start(root, ["demo", "--help"])
    obstacle = second.folder / "job.json.part"
    obstacle.mkdir()  # in place of a full disk
    let_go(root, "pipe")
    _ended(first)
    _until(lambda: (second.folder / "log.txt").exists(), second)
    assert (second.state, second.log) == ("waiting", "")
    obstacle.rmdir()
    queue.start_waiting(root)
    assert _ended(second) == ["done"]
