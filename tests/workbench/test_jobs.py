"""Long work as a process of its own: how it ends, what it says, and that its state is a matter of files."""

import json
import os
import time
from pathlib import Path

import psutil
import pytest

from workbench import jobs

SECONDS = 60.0  # a busy machine imports PyTorch slowly


def _ended(job: jobs.Job) -> str:
    until = time.monotonic() + SECONDS
    while job.state == "running":
        assert time.monotonic() < until, f"still running; its log: {job.log}"
        time.sleep(0.05)
    return job.state


def test_a_command_that_ends_well_is_done_and_its_log_is_kept(tmp_path):
    job = jobs.start(tmp_path / "jobs", "Help", ["--help"], "help")
    assert _ended(job) == "done"
    assert "Look inside neural machine translation" in job.log
    assert job.last_line.strip() == job.log.strip().split("\n")[-1].strip()


def test_a_command_that_fails_is_failed_with_its_sentence(tmp_path):
    job = jobs.start(tmp_path / "jobs", "Resume", ["resume", str(tmp_path / "nowhere")], "resume")
    assert _ended(job) == "failed"
    assert "no run here: config.yaml is missing" in job.last_line


def test_cancelling_ends_the_command_and_all_that_it_started(tmp_path, demo_runs):
    data = demo_runs / "demo" / "data"
    arguments = [
        "train",
        "transformer:preset=tiny",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "run"),
        "--device",
        "cpu",
        "--set",
        "max_steps=1000000",
    ]
    job = jobs.start(tmp_path / "jobs", "Train", arguments, "train")
    until = time.monotonic() + SECONDS
    while not (tmp_path / "run" / "training.jsonl").is_file():
        assert time.monotonic() < until, job.log
        time.sleep(0.05)
    family = [psutil.Process(job.process), *psutil.Process(job.process).children(recursive=True)]
    assert len(family) > 1, "the shell and the command"
    assert job.state == "running"
    job.cancel()
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []
    assert _ended(job) == "cancelled"
    job.cancel()  # nothing is left to end: the process number may be somebody else's by now
    assert (tmp_path / "run" / "config.yaml").is_file()


def test_state_log_and_command_survive_reading_from_disk(tmp_path):
    job = jobs.start(tmp_path / "jobs", "Systems", ["systems"], "systems")
    _ended(job)
    (again,) = jobs.list_jobs(tmp_path / "jobs")
    assert again == job
    assert (again.state, again.log) == ("done", job.log)
    assert "future-cost-2" in again.log


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"title": "cut',
        '{"title": "x", "command": 3, "process": 1, "started": 0}',
        '{"title": "x", "command": ["a"], "process": null, "started": 0}',
    ],
)
def test_what_is_no_job_is_passed_over(tmp_path, rubbish):
    for name, text in (
        ("20200101-000000-whole", json.dumps({"title": "t", "command": ["c"], "process": 2**22 + 1, "started": 1.0})),
        ("20210101-000000-rubbish", rubbish),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").write_text(text)
    (tmp_path / "file").touch()
    assert [job.folder.name for job in jobs.list_jobs(tmp_path)] == ["20200101-000000-whole"]
    assert jobs.list_jobs(tmp_path / "nowhere") == []


def test_newest_first(tmp_path):
    for second in (1, 3, 2):
        folder = tmp_path / f"20250101-00000{second}-job"
        folder.mkdir()
        (folder / "job.json").write_text(
            json.dumps({"title": str(second), "command": [], "process": 1, "started": second})
        )
    assert [job.title for job in jobs.list_jobs(tmp_path)] == ["3", "2", "1"]


def _job(folder: Path, process: int) -> jobs.Job:
    return jobs.Job(folder, "t", (), process, 0.0)


def test_states(tmp_path):
    """The exit status decides where it is there; else whether the process lives."""
    gone = 2**22 + 1  # above the largest process number of Linux
    assert _job(tmp_path, os.getpid()).state == "running"
    assert _job(tmp_path, gone).state == "lost"
    (tmp_path / "exit").write_text("")  # a file that is being written says nothing yet
    assert _job(tmp_path, gone).state == "lost"
    (tmp_path / "exit").write_text("0\n")
    assert _job(tmp_path, gone).state == "done"
    (tmp_path / "exit").write_text("143\n")
    assert _job(tmp_path, os.getpid()).state == "failed"


def test_the_last_line_is_the_newest_state_of_a_progress_bar(tmp_path):
    (tmp_path / "log.txt").write_bytes(b"begin\nstep 1/9\rstep 2/9\r\n \n")
    assert _job(tmp_path, 1).last_line == "step 2/9"
    (tmp_path / "log.txt").write_bytes(b"Stra\xdfe\n")
    assert _job(tmp_path, 1).last_line == "Stra\ufffde"
