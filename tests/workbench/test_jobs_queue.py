"""Jobs wait for their turn: in the order in which they were asked for, begun once, whoever ends, looks or is killed.

A job that is to run until the test lets it go reads its basket from a pipe, which waits for a writer.
"""

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

from workbench import cli, jobs

SECONDS = 120.0  # a busy machine starts Python slowly


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch):
    monkeypatch.delenv(jobs.AT_ONCE, raising=False)


def _until(condition, *watched: jobs.Job) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [(job.state, job.log) for job in watched]
        time.sleep(0.02)


def _ended(*watched: jobs.Job) -> list[str]:
    _until(lambda: all(job.state not in jobs.ACTIVE for job in watched), *watched)
    return [job.state for job in watched]


def _held(folder: Path, name: str) -> tuple[str, ...]:
    """The arguments of a command that runs until `_let_go`."""
    os.mkfifo(folder / name)
    return ("bundle", str(folder / f"{name}.zip"), "--basket", str(folder / name))


def _let_go(folder: Path, name: str) -> None:
    (folder / name).write_text("{}")


def _begun(job: jobs.Job) -> bool:
    """Has its shell come to its command, and is that no longer a copy of the shell?"""
    with contextlib.suppress(psutil.Error):
        return any(child.cmdline()[:1] == [sys.executable] for child in psutil.Process(job.process).children())
    return False


def _group(job: jobs.Job) -> list[psutil.Process]:
    """What is left of a job, what hands its turn on included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == job.process and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_one_runs_at_a_time_in_the_order_asked_for_and_nobody_need_look(tmp_path):
    folder = tmp_path / "jobs"
    first = jobs.start(folder, _held(tmp_path, "pipe"))
    others = [jobs.start(folder, [name, "--help"]) for name in ("runs", "figure")]
    assert [job.state for job in (first, *others)] == ["running", "waiting", "waiting"]
    assert [job.place for job in (first, *others)] == [0, 1, 2]
    assert jobs.start(folder, ["figure", "--help"]).folder == others[1].folder, "what waits is not asked for twice"
    assert [job.process for job in others] == [0, 0]
    _let_go(tmp_path, "pipe")
    assert _ended(first, *others) == ["failed", "done", "done"]
    second, third = (job.now for job in others)
    assert first.ended <= second.started <= second.ended <= third.started
    assert [job.folder for job in jobs.list_jobs(folder)] == [third.folder, second.folder, first.folder]


def test_a_job_that_waits_is_cancelled_without_having_run(tmp_path):
    folder = tmp_path / "jobs"
    first = jobs.start(folder, _held(tmp_path, "pipe"))
    second, third = (jobs.start(folder, [name, "--help"]) for name in ("runs", "figure"))
    second.cancel()
    assert (second.state, third.state, third.place) == ("cancelled", "waiting", 1)
    _let_go(tmp_path, "pipe")
    assert _ended(first, second, third) == ["failed", "cancelled", "done"]
    assert not (second.folder / "log.txt").exists()
    jobs.clear(folder)
    assert jobs.list_jobs(folder) == []


def test_a_cancelled_job_hands_its_turn_on(tmp_path):
    folder = tmp_path / "jobs"
    first = jobs.start(folder, _held(tmp_path, "pipe"))
    second = jobs.start(folder, ["runs", "--help"])
    stale = second  # as a page holds it that was drawn while it waited
    _until(lambda: _begun(first), first)
    first.cancel()
    assert _ended(first, second) == ["cancelled", "done"]
    third = jobs.start(folder, _held(tmp_path, "other"))
    stale.cancel()
    assert third.state == "running", "what has ended is not cancelled, nor is another"
    for _ in range(2):  # a second time: at once
        third.cancel()
    assert _ended(third) == ["cancelled"]


def test_as_many_run_at_once_as_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv(jobs.AT_ONCE, "2")
    folder = tmp_path / "jobs"
    held = [jobs.start(folder, _held(tmp_path, name)) for name in ("one", "two", "three")]
    assert [job.state for job in held] == ["running", "running", "waiting"]
    _let_go(tmp_path, "two")
    _until(lambda: held[2].state == "running", *held)
    assert held[0].state == "running"
    for name in ("one", "three"):
        _let_go(tmp_path, name)
    assert _ended(*held) == ["failed"] * 3


def test_many_who_ask_and_look_at_the_same_moment_begin_one(tmp_path):
    folder = tmp_path / "jobs"
    commands = [_held(tmp_path, f"pipe-{number}") for number in range(4)]

    def ask(arguments: tuple[str, ...]) -> jobs.Job:
        asked = jobs.start(folder, arguments)
        jobs.go_on(folder)
        return asked

    script = (
        "import sys; from pathlib import Path; from workbench import jobs; jobs.start(Path(sys.argv[1]), sys.argv[2:])"
    )
    with ThreadPoolExecutor(4) as tabs:
        other_app = subprocess.Popen([sys.executable, "-c", script, str(folder), *commands[3]])
        asked = list(tabs.map(ask, [*commands[:3], *commands[:3]]))
    assert other_app.wait(SECONDS) == 0
    found = jobs.list_jobs(folder)
    assert len(found) == 4
    assert len({job.folder for job in asked}) == 3
    assert sorted(job.state for job in found) == ["running", "waiting", "waiting", "waiting"]
    for job in found:
        job.cancel()
    assert _ended(*found) == ["cancelled"] * 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_where_a_machine_goes_down_the_queue_waits_for_the_app(tmp_path, monkeypatch, number):
    """Everything is told to end, or killed: the next job is not begun for nothing, and the app goes on with it."""
    root = tmp_path / "runs"
    folder = root / jobs.FOLDER
    first = jobs.start(folder, _held(tmp_path, "pipe"))
    second = jobs.start(folder, ["runs", "--help"])
    _until(lambda: _begun(first), first)
    os.killpg(first.process, number)
    assert _ended(first) == ["lost" if number == signal.SIGKILL else "failed"]
    _until(lambda: not _group(first), first)
    assert second.state == "waiting"

    def replaced(program, arguments, environment):
        raise SystemExit(int(environment[jobs.AT_ONCE]))

    monkeypatch.setattr(os, "execve", replaced)
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(root), "--jobs", "3"])
    assert told.exit_code == 3, told.output
    assert _ended(second) == ["done"]


def test_what_cannot_be_kept_is_not_begun(tmp_path):
    folder = tmp_path / "jobs"
    first = jobs.start(folder, _held(tmp_path, "pipe"))
    second = jobs.start(folder, ["runs", "--help"])
    obstacle = second.folder / "job.json.part"
    obstacle.mkdir()  # in place of a full disk
    _let_go(tmp_path, "pipe")
    _ended(first)
    _until(lambda: (second.folder / "log.txt").exists(), second)
    assert (second.state, second.log) == ("waiting", "")
    obstacle.rmdir()
    jobs.go_on(folder)
    assert _ended(second) == ["done"]
