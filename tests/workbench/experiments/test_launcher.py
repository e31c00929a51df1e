"""A grid in several processes, and as jobs: cells are shared, an interrupt stops all and loses none of them, a job that
is cut off is queued again and goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from tests.paths import ROOT
from workbench.evaluation.job_array import ArraySettings
from workbench.experiments.grid import Cell, cells, read_experiment
from workbench.experiments.launcher import run_in_processes, submit, worker_environment
from workbench.experiments.runner import run_experiment
from workbench.store.runs import RunError, open_run

GRID = {
    "name": "grid",
    "data": {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 150, "dev": 10, "test": 5}},
    "systems": {"plain": "transformer:preset=tiny"},
    "seeds": [1, 2],
    "training": {
        "max_steps": 100_000,
        "validate_every": 3,
        "log_every": 1,
        "batch_tokens": 256,
        "early_stopping": {"patience": 100_000},
    },
    "search": {"beam": 1, "max_length": 4},
}


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(GRID, sort_keys=False), encoding="utf-8")
    return path


def _wait_for(what, process: subprocess.Popen | None = None, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.05)


def _saved(cell: Cell) -> bool:
    return bool(list(cell.folder.glob("state/step-*/progress.json")))


def _end_soon(cell: Cell) -> int:
    """Let a run end a little after the step that its log has reached; returns the last step."""
    last = cell.steps()[0] + 50
    config = cell.folder / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 100000", f"max_steps: {last}"))
    return last


def _trained_steps(cell: Cell) -> list[int]:
    return [event["step"] for event in open_run(cell.folder).events() if event["event"] == "train"]


@pytest.mark.exhaustive
def test_processes_share_a_grid_and_ctrl_c_leaves_all_of_it_resumable(file, tmp_path):
    root = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", "experiment", "run", str(file), "--runs", str(root)]
        + ["--device", "cpu", "--processes", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    both = cells(read_experiment(file), root)
    _wait_for(lambda: all(map(_saved, both)), process)
    assert [cell.locked() for cell in both] == [True, True], "each has a process of its own, at the same time"
    assert all(cell.state_text().endswith(" of 100000, running") for cell in both)
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "can be resumed" in said
    assert not any(worker.is_running() for worker in workers)
    assert not any(cell.locked() for cell in both)
    assert not [path for path in root.rglob("*") if path.name.endswith(".part")]
    assert "Traceback" not in said + "".join(path.read_text() for path in root.rglob("worker-*.log"))

    lasts = [_end_soon(cell) for cell in both]
    run_experiment(read_experiment(file), root, None, print, device="cpu")
    assert [cell.state for cell in both] == ["done", "done"]
    assert [_trained_steps(cell) for cell in both] == [list(range(1, last + 1)) for last in lasts]


@pytest.mark.slow
def test_being_terminated_stops_the_processes_too(file, tmp_path):
    started, others = [], psutil.Process().children()  # others: of tests that ran before in this process

    def terminate(*_) -> None:  # called at the first look at the workers
        started.extend(child for child in psutil.Process().children() if child not in others)
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        run_in_processes(file, tmp_path / "runs", None, ["cpu"], print, terminate)
    assert started
    assert not any(child.is_running() for child in started)


@pytest.mark.slow
def test_a_process_that_fails_is_named_with_the_end_of_its_log(file, tmp_path):
    (tmp_path / "runs" / "grid" / "plain.seed-1").mkdir(parents=True)
    (tmp_path / "runs" / "grid" / "plain.seed-1" / "config.yaml").write_text("name: x")
    log = tmp_path / "runs" / "grid" / "worker-1.log"
    log.write_text("of another process that works on the grid\n")
    with pytest.raises(
        RunError, match=r"1 of 1 processes failed; .*worker-1\.log ends: 1 of 1 cells failed.*data is mis"
    ):
        run_in_processes(file, tmp_path / "runs", None, ["cpu"], print, lambda *_: None, only=["plain.seed-1"])
    assert log.read_text().startswith("of another process that works on the grid\n")


def test_workers_share_the_processors_and_each_sees_only_its_own_gpu(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    threads = [worker_environment("cpu", workers)["OMP_NUM_THREADS"] for workers in (1, 2, 6, 9)]
    assert threads == ["6", "3", "1", "1"]
    assert worker_environment("cuda:3")["CUDA_VISIBLE_DEVICES"] == "3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-7f")  # what a scheduler lent us
    assert [worker_environment(f"cuda:{index}")["CUDA_VISIBLE_DEVICES"] for index in (0, 1)] == ["4", "GPU-7f"]
    with pytest.raises(RunError, match="lists 2 devices"):
        worker_environment("cuda:2")
    with pytest.raises(RunError, match="name cpu, cuda or cuda:N"):
        worker_environment("gpu:0")


@pytest.mark.exhaustive
def test_jobs_run_cells_and_one_that_is_cut_off_is_queued_again_and_goes_on(file, tmp_path, monkeypatch):
    """submitit's own local executor: controller, pickle, signal and requeue are those of a cluster."""
    pytest.importorskip("submitit")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(ROOT)
    root, said = tmp_path / "runs", []
    settings, only = ArraySettings("local", {"timeout_min": 5}), ["plain.seed-2"]
    (job,) = submit(file, root, None, said.append, settings, "cpu", only=only)
    first, second = cells(read_experiment(file), root)
    assert said[-1].startswith(f"{second.folder}: job {job.job_id}, log {root}")
    _wait_for(lambda: _saved(second))
    (task,) = [child for child in psutil.Process(int(job.job_id)).children() if "_submit" in " ".join(child.cmdline())]
    last = _end_soon(second)  # read when the job begins again: until the signal it trains by the old number
    task.send_signal(signal.SIGUSR2)  # what Slurm sends before time is up
    assert job.result().startswith("done")
    starts = [event for event in open_run(second.folder).events() if event["event"] == "start"]
    assert len(starts) == 2, "the job was queued again by its checkpoint, and trained on"
    assert starts[1]["step"] > 0
    assert _trained_steps(second) == list(range(1, last + 1))
    assert first.state == "missing"
    assert submit(file, root, None, print, ArraySettings("local"), only=only) == [], "what is done is not submitted"
    with pytest.raises(RunError, match=r"submitit rejects the settings: .*pbs"):
        submit(file, root, None, print, ArraySettings("pbs"))
