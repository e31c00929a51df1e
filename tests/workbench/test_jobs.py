"""Long work as a process of its own: how it ends, what it says, and that its state is a matter of files."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from workbench import jobs
from workbench.runs import open_run
from workbench.training import finished, train

SECONDS = 60.0  # a busy machine imports PyTorch slowly
GONE = 2**22 + 1  # above the largest process number of Linux
with_births = pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="this system keeps no /proc")


def _until(condition, job: jobs.Job) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{job.state}; its log: {job.log}"
        time.sleep(0.02)


def _is_alive(process: psutil.Process) -> bool:
    """One that has ended may stand in the table until somebody asks for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ended(job: jobs.Job) -> str:
    _until(lambda: job.state not in jobs.ACTIVE, job)
    return job.state


def test_a_command_that_ends_well_is_done_and_its_log_is_kept(tmp_path):
    job = jobs.start(tmp_path / "jobs", ["--help"], "Help")
    assert _ended(job) == "done"
    assert "Look inside neural machine translation" in job.log
    assert job.last_line.strip() == job.log.strip().split("\n")[-1].strip()
    assert (job.title, job.command) == ("Help", "workbench --help")
    assert job.started <= job.ended <= time.time()
    (again,) = jobs.list_jobs(tmp_path / "jobs")  # as an app that is started later finds it
    assert again == job
    assert (again.state, again.log) == ("done", job.log)


def test_a_command_that_fails_is_failed_with_its_sentence_and_can_be_started_again(tmp_path):
    job = jobs.start(tmp_path / "jobs", ["resume", str(tmp_path / "nowhere")])
    assert _ended(job) == "failed"
    assert (job.exit_code, job.title) == (2, "resume nowhere")
    assert "no run here: config.yaml is missing" in job.last_line
    second = jobs.again(job)
    assert second.folder != job.folder
    assert (second.arguments, second.title) == (job.arguments, job.title)
    assert _ended(second) == "failed"
    assert jobs.latest(tmp_path / "jobs", job.arguments) == second


def test_a_cancelled_training_ends_whole_says_how_to_go_on_and_goes_on(tmp_path, demo_runs):
    """The job's state says that it is ending until all that it started is gone."""
    run = tmp_path / "run"
    settings = ("max_steps=1000000", "validate_every=3", "log_every=1", "batch_tokens=256")
    arguments = ["train", "transformer:preset=tiny", "--data", str(demo_runs / "demo" / "data"), "--out", str(run)]
    job = jobs.start(
        tmp_path / "jobs", [*arguments, "--device", "cpu", *(part for one in settings for part in ("--set", one))]
    )
    _until(lambda: list(run.glob("state/step-*/progress.json")), job)
    family = [psutil.Process(job.process), *psutil.Process(job.process).children(recursive=True)]
    assert len(family) > 1, "the shell and the command"
    assert job.state == "running"
    job.cancel()
    assert job.state in ("ending", "cancelled")
    assert _ended(job) == "cancelled"
    shell, *others = family
    assert [one for one in others if _is_alive(one)] == []
    _until(lambda: not _is_alive(shell), job)  # its last act was to write down how the command ended
    job.cancel()  # nothing is left to end: the process number may be somebody else's by now

    assert f"go on with it: workbench resume {run}" in job.log
    assert "Traceback" not in job.log
    assert not [path for path in run.rglob("*") if path.name.endswith(".part") or ".unfinished" in path.name]
    reached = max(event["step"] for event in open_run(run).events())
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 1000000", f"max_steps: {reached + 1}"))
    train(open_run(run), device="cpu")
    assert finished(run)


def test_one_command_runs_once_whoever_starts_it(tmp_path):
    """Two tabs at the same moment; another command is another job, also within one second."""
    commands = [["--help"]] * 4 + [["figure", "--help"]]
    with ThreadPoolExecutor(5) as tabs:
        started = list(tabs.map(lambda arguments: jobs.start(tmp_path / "jobs", arguments), commands))
    assert len({job.folder for job in started}) == 2
    assert len(jobs.list_jobs(tmp_path / "jobs")) == 2
    assert [_ended(job) for job in started] == ["done"] * 5
    assert jobs.start(tmp_path / "jobs", ["--help"]).folder not in {job.folder for job in started}


@pytest.mark.parametrize(("whole", "state"), [(True, "lost"), (False, "failed")])
def test_a_job_that_is_killed_from_outside(tmp_path, whole, state):
    """With the shell that waits for it nobody is left to write a result; alone, its signal is its result."""
    job = jobs.start(tmp_path, ["systems", "--sizes"])
    shell = psutil.Process(job.process)
    _until(lambda: shell.children() or job.state not in jobs.ACTIVE, job)
    (command,) = shell.children()
    if whole:
        os.killpg(job.process, signal.SIGKILL)
    else:
        command.kill()
    assert _ended(job) == state
    assert job.exit_code == (None if whole else 128 + signal.SIGKILL)


@with_births
def test_a_job_goes_on_when_the_app_that_started_it_is_stopped(tmp_path, demo_runs):
    """As by Ctrl-C in its terminal, then by force: the job is in no group of the app's, and another app finds it."""
    data, settings = demo_runs / "demo" / "data", ("max_steps=1000000", "log_every=1", "batch_tokens=256")
    arguments = ["train", "transformer:preset=tiny", "--data", str(data), "--out", str(tmp_path / "run")]
    arguments += ["--device", "cpu", *(part for one in settings for part in ("--set", one))]
    script = (
        "import sys, time; from pathlib import Path; from workbench import jobs\n"
        "jobs.start(Path(sys.argv[1]), sys.argv[2:]); print('started', flush=True); time.sleep(600)"
    )
    app = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "jobs"), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert app.stdout.readline() == b"started\n"
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(app.pid, number)
    app.wait()
    (job,) = jobs.list_jobs(tmp_path / "jobs")
    _until(lambda: job.progress is not None, job)  # what it says goes on, too
    assert job.state == "running"
    again = jobs.start(tmp_path / "jobs", arguments)
    assert again.folder == job.folder, "the same command is not begun a second time"
    job.cancel()
    assert _ended(job) == "cancelled"


def test_a_command_outlives_its_shell_and_is_still_running(tmp_path):
    shell = subprocess.Popen(["/bin/sh", "-c", "sleep 60 &"], start_new_session=True)
    shell.wait()
    job = jobs.Job(tmp_path, "t", ("systems",), shell.pid, 0.0, "birth of the shell")
    assert job.state == "running"
    job.cancel()
    _until(lambda: job.state == "cancelled", job)


@with_births
def test_a_process_number_that_went_to_another_process_is_not_taken_for_the_job(tmp_path):
    def of(birth: str) -> jobs.Job:
        return jobs.Job(tmp_path, "t", (), os.getpid(), 0.0, birth)

    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]  # field 22, starttime: man 5 proc
    assert of(f"{boot} {ticks}").state == "running"
    assert of(f"{boot} {int(ticks) - 1}").state == "lost"
    assert of(f"another boot {ticks}").state == "lost"
    of(f"another boot {ticks}").cancel()  # ends nobody: we are here to say so
    assert not (tmp_path / "cancelled").exists()


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"title": "cut',
        '{"title": "x", "arguments": 3, "process": 1, "started": 0}',
        '{"title": "x", "arguments": ["a"], "process": null, "started": 0}',
    ],
)
def test_what_is_no_job_is_passed_over(tmp_path, rubbish):
    whole = {"title": "t", "arguments": ["c"], "process": GONE, "started": 1.0}
    for name, text in (("20200101-000000-whole", json.dumps(whole)), ("20210101-000000-rubbish", rubbish)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").write_text(text)
    (tmp_path / "file").touch()
    assert [job.folder.name for job in jobs.list_jobs(tmp_path)] == ["20200101-000000-whole"]
    assert jobs.list_jobs(tmp_path / "nowhere") == []


def _lay_down(folder: Path, process: int, started: float = 1.0, **files: str) -> None:
    folder.mkdir(parents=True)
    told = {"title": folder.name, "arguments": ["systems"], "process": process, "started": started}
    (folder / "job.json").write_text(json.dumps(told))
    for name, text in files.items():
        (folder / name).write_text(text)


def test_newest_first_and_only_what_has_ended_is_cleared(tmp_path):
    for second in (1, 3, 2):
        _lay_down(tmp_path / f"{second}", os.getpid() if second == 3 else GONE, second)
    assert [job.title for job in jobs.list_jobs(tmp_path)] == ["3", "2", "1"]
    jobs.clear(tmp_path)
    assert [job.title for job in jobs.list_jobs(tmp_path)] == ["3"]


@pytest.mark.parametrize(
    ("files", "gone", "state"),
    [
        ({}, False, "running"),
        ({}, True, "lost"),
        ({"exit": ""}, True, "lost"),  # a file that is being written says nothing yet
        ({"exit": "0\n"}, True, "done"),
        ({"exit": "143\n"}, False, "failed"),
        ({"cancelled": ""}, False, "ending"),
        ({"cancelled": ""}, True, "cancelled"),
        ({"cancelled": "", "exit": "130\n"}, True, "cancelled"),
        ({"cancelled": "", "exit": "0\n"}, True, "done"),  # it was quicker than the one who cancelled it
    ],
)
def test_states(tmp_path, files, gone, state):
    """The result decides where there is one; else whether the process lives, and whether it was asked to end."""
    _lay_down(tmp_path / "job", GONE if gone else os.getpid(), **files)
    assert [job.state for job in jobs.list_jobs(tmp_path)] == [state]


@pytest.mark.parametrize(
    ("log", "last", "progress"),
    [
        (b"", "", None),
        (b"begin\nstep 1/9\rstep 2/9\r\n \n", "step 2/9", 2 / 9),
        (b"Stra\xdfe\n", "Stra\ufffde", None),
        (b"translating test with 3/4/run 20/500\nwritten to /a/1/2\n", "written to /a/1/2", 20 / 500),
        (b"demo 880/880 transformer\ndemo 220/880 future-cost-1\n", "demo 220/880 future-cost-1", 0.25),
        (b"x 3/0 \nx 9/3 \n", "x 9/3 ", None),
    ],
)
def test_the_last_line_and_the_share_that_the_newest_bar_says(tmp_path, log, last, progress):
    (tmp_path / "log.txt").write_bytes(log)
    job = jobs.Job(tmp_path, "t", (), GONE, 0.0)
    assert (job.last_line, job.progress) == (last, progress)


def test_of_a_long_log_the_end_is_read(tmp_path):
    (tmp_path / "log.txt").write_text("".join(f"line {number}\n" for number in range(1_000_000)))
    job = jobs.Job(tmp_path, "t", (), GONE, 0.0)
    assert job.last_line == "line 999999"
    assert len(job.log) < 20_000


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("workbench trace '/runs/a b' --test test", ("trace", "/runs/a b", "--test", "test")),
        ("workbench demo --runs /runs", ("demo", "--runs", "/runs")),
        ("workbench train future-cost-2 --data DATA --out /runs/NAME", ()),
        ("workbench aligner --source FILE", ()),
        ("workbench app", ()),  # never ends
        ("rm -rf /runs", ()),
        ("workbench", ()),
        ("workbench trace 'unclosed", ()),
        ("", ()),
    ],
)
def test_a_page_may_start_our_own_commands_that_leave_no_word_open(line, arguments):
    assert jobs.startable(line) == arguments


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "runs").touch()
    with pytest.raises(jobs.JobError, match=r"runs/\.jobs: not a directory; no job can be started.*--runs FOLDER"):
        jobs.start(tmp_path / "runs" / ".jobs", ["systems"])
