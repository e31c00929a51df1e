"""Long work as a process of its own: how it ends, what it says, and that its state is a matter of files."""

import json
import math
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

from tests.workbench.jobs.held_jobs import GONE, asleep, held, lay_down, prepare
from workbench.experiments.train import finished, new_run, train
from workbench.jobs import processes, queue
from workbench.store.runs import open_run

SECONDS = 60.0  # a busy machine imports PyTorch slowly
with_births = pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="this system keeps no /proc")


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch) -> Path:
    return prepare(tmp_path, monkeypatch)


def _until(condition, job: queue.Job | None = None) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{job.state}; its log: {job.log}" if job else "it takes too long"
        time.sleep(0.02)


def _is_alive(process: psutil.Process) -> bool:
    """One that has ended may stand in the table until somebody asks for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ended(job: queue.Job) -> str:
    _until(lambda: job.state not in queue.ACTIVE, job)
    return job.state


def test_a_command_that_ends_well_is_done_and_its_log_is_kept(root):
    job = queue.start(root, ["trace", "--help"], "Help")
    assert _ended(job) == "done"
    assert "keep what happened inside" in job.log
    assert job.last_line.strip() == job.log.strip().split("\n")[-1].strip()
    assert (job.title, job.command) == ("Help", "workbench trace --help")
    assert job.started <= job.ended <= time.time()
    (again,) = queue.list_jobs(root)  # as an app that is started later finds it
    assert again == job
    assert (again.state, again.log) == ("done", job.log)


@pytest.mark.slow
def test_a_command_that_fails_is_failed_with_its_sentence_and_can_be_started_again(root):
    job = queue.start(root, ["resume", str(root / "nowhere")])
    assert _ended(job) == "failed"
    assert (job.exit_code, job.title) == (2, "resume nowhere")
    assert "no run here: config.yaml is missing" in job.last_line
    second = queue.restart(job)
    assert second.folder != job.folder
    assert (second.arguments, second.title) == (job.arguments, job.title)
    assert _ended(second) == "failed"
    assert queue.latest(root, job.arguments) == second


def _endless(root: Path, demo_runs: Path) -> Path:
    """A run that has begun and would train for days."""
    settings = {"max_steps": 1_000_000, "validate_every": 3, "log_every": 1, "batch_tokens": 256}
    new_run(root / "run", "transformer:preset=tiny", demo_runs / "demo" / "data", settings)
    return root / "run"


@pytest.mark.slow
def test_a_cancelled_training_ends_whole_says_how_to_go_on_and_goes_on(root, demo_runs):
    """The job's state says that it is ending until all that it started is gone."""
    run = _endless(root, demo_runs)
    job = queue.start(root, ["resume", str(run)])
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


def test_one_command_runs_once_whoever_starts_it(root):
    """Two tabs at the same moment; another command is another job, also within one second."""
    commands = [["demo", "--help"]] * 4 + [["trace", "--help"]]
    with ThreadPoolExecutor(5) as tabs:
        started = list(tabs.map(lambda arguments: queue.start(root, arguments), commands))
    assert len({job.folder for job in started}) == 2
    assert len(queue.list_jobs(root)) == 2
    assert [_ended(job) for job in started] == ["done"] * 5
    assert queue.start(root, ["demo", "--help"]).folder not in {job.folder for job in started}


@pytest.mark.parametrize(("whole", "state"), [(True, "lost"), (False, "failed")])
def test_a_job_that_is_killed_from_outside(root, whole, state):
    """With the shell that waits for it nobody is left to write a result; alone, its signal is its result."""
    job = queue.start(root, held(root, "one"))
    shell = psutil.Process(job.process)
    _until(lambda: shell.children() or job.state not in queue.ACTIVE, job)
    (command,) = shell.children()
    if whole:
        os.killpg(job.process, signal.SIGKILL)
    else:
        command.kill()
    assert _ended(job) == state
    assert job.exit_code == (None if whole else 128 + signal.SIGKILL)


@with_births
@pytest.mark.slow
def test_a_job_goes_on_when_the_app_that_started_it_is_stopped(root, demo_runs):
    """As by Ctrl-C in its terminal, then by force: the job is in no group of the app's, and another app finds it."""
    arguments = ["resume", str(_endless(root, demo_runs))]
    script = (
        "import sys, time; from pathlib import Path; from workbench.jobs import queue\n"
        "queue.start(Path(sys.argv[1]), sys.argv[2:]); print('started', flush=True); time.sleep(600)"
    )
    app = subprocess.Popen(
        [sys.executable, "-c", script, str(root), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert app.stdout.readline() == b"started\n"
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(app.pid, number)
    app.wait()
    (job,) = queue.list_jobs(root)
    _until(lambda: job.progress is not None, job)  # what it says goes on, too
    assert job.state == "running"
    again = queue.start(root, arguments)
    assert again.folder == job.folder, "the same command is not begun a second time"
    job.cancel()
    assert _ended(job) == "cancelled"


def test_what_outlives_its_shell_is_still_running_and_can_be_ended(root, tmp_path):
    folder = lay_down(root, "orphaned")
    with asleep(tmp_path, str(folder)) as shell:
        _until(lambda: psutil.Process(shell.number).children())
        psutil.Process(shell.number).kill()
        (folder / "job.json").unlink()
        folder.rmdir()
        lay_down(root, "orphaned", shell)
        (job,) = queue.list_jobs(root)
        _until(lambda: not _is_alive(psutil.Process(shell.number)))
        assert job.state == "running"
        job.cancel()
        _until(lambda: job.state == "cancelled", job)


@pytest.mark.parametrize("birth", ["", "long ago"])
@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_process_that_is_not_the_jobs_own_is_never_signalled(root, tmp_path, birth, cancelled):
    """A number alone says nothing: it may be anybody's, and so may all of its group."""
    with asleep(tmp_path) as shell:
        for number in (shell.number, os.getpid(), 1):
            folder = lay_down(root, f"of-{number}", shell, process=number, birth=birth)
            (job,) = (job for job in queue.list_jobs(root) if job.folder == folder)
            assert job.state == "lost"
            for _ in range(cancelled):
                job.cancel()
            assert not (folder / "cancelled").exists()
        time.sleep(0.1)
        assert _is_alive(psutil.Process(shell.number))
        assert psutil.Process(shell.number).children(), "nor what it started"


@pytest.mark.parametrize("number", [-5, -1, 0, 1])
def test_a_number_below_two_is_no_process(number):
    shell = processes.Shell(number, processes.birth_of(max(number, 1)), "")
    assert not shell.alive
    shell.signal(signal.SIGTERM)  # 0 would be our own group, -1 everybody: we are here to say so


def test_one_process_of_somebodys_group_is_not_taken_for_a_job(tmp_path):
    """Its own birth is right, and yet no shell of ours leads that group."""
    with asleep(tmp_path) as shell:
        _until(lambda: psutil.Process(shell.number).children())
        (child,) = psutil.Process(shell.number).children()
        assert not processes.Shell(child.pid, processes.birth_of(child.pid), "").alive
        assert processes.Shell(shell.number, shell.birth, "").alive


@with_births
def test_a_process_number_that_went_to_another_process_is_not_taken_for_the_job(tmp_path):
    with asleep(tmp_path) as shell:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{shell.number}/stat").read_text()
        ticks = stat.rpartition(")")[2].split()[19]  # field 22, starttime: man 5 proc
        births = {f"{boot} {ticks}": True, f"{boot} {int(ticks) - 1}": False, f"another boot {ticks}": False}
        assert {birth: processes.Shell(shell.number, birth, "").alive for birth in births} == births


def test_where_there_is_no_table_of_processes_births_are_told_too(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.jobs.processes._TABLE", tmp_path / "no-proc")
    with asleep(tmp_path) as shell:
        assert shell.birth == repr(psutil.Process(shell.number).create_time())
        assert shell.alive
        assert not processes.Shell(shell.number, "1.0", "").alive
        shell.signal(signal.SIGKILL)
        _until(lambda: not shell.alive)


_WHOLE = {"root": "ROOT", "title": "t", "arguments": ["resume", "x"], "process": GONE, "birth": "", "started": 1.0,
          "asked": 1.0}  # fmt: skip


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"title": "cut',
        *(
            json.dumps(_WHOLE | change)
            for change in (
                {"arguments": 3}, {"arguments": [3]}, {"arguments": None}, {"process": None}, {"process": "7"},
                {"process": -1}, {"process": 2**40}, {"process": True}, {"process": 7.0}, {"started": math.nan},
                {"started": math.inf}, {"started": 1e300}, {"started": -1e300}, {"asked": math.nan}, {"title": 3},
                {"birth": None}, {"root": "/elsewhere"}, {"root": None}, {"more": 1},
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_job_is_passed_over(root, rubbish):
    whole = lay_down(root, "20200101-000000-whole")
    folder = lay_down(root, "20210101-000000-rubbish")
    (folder / "job.json").write_text(rubbish.replace("ROOT", str(root.resolve())))
    (whole.parent / "file").touch()
    assert [job.folder for job in queue.list_jobs(root)] == [whole]
    assert queue.list_jobs(root / "nowhere") == []


def test_newest_first_and_only_what_has_ended_is_cleared(root, tmp_path):
    with asleep(tmp_path) as shell:
        for second in (1, 3, 2):
            lay_down(root, f"{second}", shell if second == 3 else None, started=float(second), asked=float(second))
        assert [job.title for job in queue.list_jobs(root)] == ["3", "2", "1"]
        queue.clear(root)
        assert [job.title for job in queue.list_jobs(root)] == ["3"]


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
def test_states(root, tmp_path, files, gone, state):
    """The result decides where there is one; else whether the process lives, and whether it was asked to end."""
    with asleep(tmp_path) as shell:
        folder = lay_down(root, "job", None if gone else shell)
        for name, text in files.items():
            (folder / name).write_text(text)
        assert [job.state for job in queue.list_jobs(root)] == [state]


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
    job = queue.Job(tmp_path, tmp_path, "t", (), GONE, 0.0)
    assert (job.last_line, job.progress) == (last, progress)


def test_of_a_long_log_the_end_is_read(tmp_path):
    (tmp_path / "log.txt").write_text("".join(f"line {number}\n" for number in range(1_000_000)))
    job = queue.Job(tmp_path, tmp_path, "t", (), GONE, 0.0)
    assert job.last_line == "line 999999"
    assert len(job.log) < 20_000


def test_a_folder_that_cannot_be_written_is_named(root, tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(queue.JobError, match=r"state/nmt-workbench: not a directory; no job can be started.*XDG_"):
        queue.start(root, ["demo", "--help"])
