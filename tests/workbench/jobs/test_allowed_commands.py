"""What a page may start, and what a runs folder from somebody else may not: none of its files is read as a job."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.workbench.jobs.held_jobs import asleep, held, lay_down, let_go, prepare
from workbench.jobs import allowed_commands, state_folder
from workbench.jobs import queue as jobs

pytestmark = pytest.mark.long

SECONDS = 60.0


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    return prepare(tmp_path, monkeypatch)


def _until(condition) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "line",
    [
        "workbench trace 'ROOT/a b' --test test",
        "workbench trace ROOT/a --test test --arrays '*.assignments'",
        "workbench demo --runs ROOT",
        "workbench demo 'pfrnn-loss+future-cost-2:rnn_cell=lstm' --runs ROOT",
        "workbench translate ROOT/group/a@1250 ROOT/b --test test --save-beams --beam 4 --n-best 4",
        "workbench contrastive-eval --controlled test --contexts none --run ROOT/a",
        "workbench resume ROOT/a",
        "workbench resume --help",
    ],
)
def test_a_page_may_start_our_own_commands_on_runs_of_its_folder(root, line):
    read = allowed_commands.read(line.replace("ROOT", str(root)), root)
    assert len(read) > 1
    assert line.startswith(f"workbench {read[0]} ")
    assert not allowed_commands.read(line.replace("ROOT", str(root.parent)), root) or "ROOT" not in line


@pytest.mark.parametrize(
    "line",
    [
        "workbench train future-cost-2 --data DATA --out ROOT/NAME",  # words left to the reader
        "workbench contrastive-eval FILE --run ROOT/a",
        "workbench benchmark speed transformer --peers ROOT/evil.sh",  # commands that no page needs
        "workbench data train-aligner --source ROOT/a --target ROOT/b --out ROOT/c",
        "workbench app",
        "workbench trace ROOT/a --device cuda",  # options that no page needs
        "workbench translate ROOT/a --input ROOT/b --output /tmp/c",
        "workbench translate ROOT/a -o/tmp/c --test test",
        "workbench translate ROOT/a --output=/tmp/c",
        "workbench adequacy ROOT/a --aligner ROOT/b.npz",
        "workbench contrastive-eval ROOT/items.tsv --run ROOT/a",
        "workbench trace ROOT/a --test ../../elsewhere",  # values that are none
        "workbench trace ROOT/a --test ..",
        "workbench trace ROOT/a --test --arrays",
        "workbench trace ROOT/a --test",
        "workbench translate ROOT/a --test test --beam 4x",
        "workbench resume ROOT",  # no run of this folder
        "workbench resume /elsewhere/a",
        "workbench resume a",
        "workbench resume ROOT/../a",
        "workbench resume ROOT/link",
        "workbench resume ROOT/circle/a",
        "workbench resume ROOT/a\0",
        "workbench resume ROOT/\udcff",
        "workbench demo --runs /elsewhere",
        "workbench demo ROOT/a --runs ROOT",
        "rm -rf ROOT",
        "workbench",
        "workbench trace 'unclosed",
        "",
    ],
)
def test_no_other_command_and_no_other_word_is_startable(root, line):
    (root / "link").symlink_to(root.parent)
    (root / "circle").symlink_to(root / "circle")
    line = line.replace("ROOT", str(root))
    assert allowed_commands.read(line, root) == ()
    with pytest.raises(jobs.JobError, match="pages may start only certain commands"):
        jobs.start(root, line.split(" ")[1:])
    assert jobs.list_jobs(root) == []


def test_every_startable_command_and_option_is_one_of_the_command_line():
    import typer

    from workbench.cli import app

    commands = typer.main.get_command(app).commands
    for name, form in allowed_commands.FORMS.items():
        command = commands[name]
        if default := getattr(command, "default", ""):  # of a group
            command = command.commands[default]
        known = {option for one in command.params for option in one.opts}
        assert set(form.options) <= known, name


@pytest.mark.slow
def test_a_job_that_was_kept_under_an_old_name_begins_again_under_todays(root):
    run = str(root / "a")
    folder = lay_down(root, "old", arguments=["contrast", "--controlled", "test", "--run", run])
    (old,) = jobs.list_jobs(root)
    assert (old.folder, old.arguments[0]) == (folder, "contrast")
    again = jobs.restart(old)
    assert again.arguments == ("contrastive-eval", "--controlled", "test", "--run", run)
    _until(lambda: again.state not in jobs.ACTIVE)
    assert "is now" not in again.log


def _evil(root: Path, mark: Path) -> tuple[str, ...]:
    """A command that would run a program that lies among the runs."""
    program = root / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o700)
    return ("benchmark", "speed", "transformer", "--peers", str(program))


@pytest.mark.parametrize("process", [0, 1])
def test_a_job_among_the_runs_is_not_read_at_all(root, tmp_path, process):
    """However it is laid out there: as older versions kept jobs, or as this one does."""
    with asleep(tmp_path) as shell:
        number = shell.number if process else 0
        about = {"root": str(root), "title": "t", "arguments": _evil(root, tmp_path / "ran"), "process": number,
                 "birth": shell.birth, "started": 1.0, "asked": 1.0}  # fmt: skip
        queue = jobs.queue_of(root).relative_to(state_folder.state_folder().parent)
        for folder in (root / ".jobs" / "x", root / queue / "x"):
            folder.mkdir(parents=True)
            (folder / "job.json").write_text(json.dumps(about))
        assert jobs.list_jobs(root) == []
        assert jobs.waiting(root) == []
        jobs.start_waiting(root)
        jobs.clear(root)
        assert (root / ".jobs" / "x" / "job.json").exists()
        assert shell.alive
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_command_is_looked_at_again_where_it_begins(root, tmp_path):
    """In a queue that is ours: whoever begins the next one refuses it, says why, and the queue goes on."""
    first = jobs.start(root, held(root, "first"))
    waiting = {
        "evil": _evil(root, tmp_path / "ran"),
        "elsewhere": ("resume", str(tmp_path / "elsewhere")),
        "options": ("translate", str(root / "a"), "--test", "t", "--output", str(tmp_path / "ran")),
    }
    for place, (name, arguments) in enumerate(waiting.items()):
        lay_down(root, name, process=0, arguments=arguments, asked=first.asked + 1 + place)
    last = jobs.start(root, ["demo", "--help"])
    last_asked = json.loads((last.folder / "job.json").read_text()) | {"asked": first.asked + 9}
    (last.folder / "job.json").write_text(json.dumps(last_asked))
    let_go(root, "first")  # what ends begins the next
    _until(lambda: all(job.state not in jobs.ACTIVE for job in jobs.list_jobs(root)) or jobs.start_waiting(root))
    states = {job.title: job.state for job in jobs.list_jobs(root)}
    assert states == {"resume first": "failed", **dict.fromkeys(waiting, "failed"), "demo --help": "done"}
    for job in jobs.list_jobs(root):
        if job.title in waiting:
            assert "may not be started by a page" in job.last_line
            with pytest.raises(jobs.JobError, match="on a command line"):
                jobs.restart(job)
    assert not (tmp_path / "ran").exists()


def test_a_queue_belongs_to_one_runs_folder_and_to_none_that_it_is_copied_to(root, tmp_path):
    job = jobs.start(root, ["demo", "--help"])
    _until(lambda: job.state == "done")
    (tmp_path / "link").symlink_to(root)
    assert [one.folder for one in jobs.list_jobs(tmp_path / "link")] == [job.folder], "by whatever name it is opened"
    other = tmp_path / "other"
    other.mkdir()
    shutil.copytree(jobs.queue_of(root), jobs.queue_of(other))
    assert jobs.list_jobs(other) == []


def test_a_folder_of_state_that_others_may_write_is_not_used(root):
    lay_down(root, "waiting", process=0)
    assert [job.title for job in jobs.waiting(root)] == ["waiting"]
    state_folder.state_folder().chmod(0o777)
    assert jobs.list_jobs(root) == []
    with pytest.raises(jobs.JobError, match="or others may write there"):
        jobs.start(root, ["demo", "--help"])
    state_folder.state_folder().chmod(0o700)
    elsewhere = state_folder.state_folder().rename(root / "state")
    state_folder.state_folder().symlink_to(elsewhere)
    assert jobs.list_jobs(root) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_state_that_somebody_else_owns_is_not_used(root):
    lay_down(root, "waiting", process=0)
    os.chown(state_folder.state_folder(), 12345, 12345)
    assert jobs.list_jobs(root) == []
    with pytest.raises(jobs.JobError, match="belongs to somebody else"):
        jobs.start(root, ["demo", "--help"])


def test_the_folder_is_this_users_alone_and_a_relative_place_is_passed_over(root, monkeypatch, tmp_path):
    lay_down(root, "one")
    folder = state_folder.state_folder()
    assert folder == tmp_path / "state" / state_folder.NAME
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv(state_folder.HOME, "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder.state_folder() == tmp_path / ".local" / "state" / state_folder.NAME
