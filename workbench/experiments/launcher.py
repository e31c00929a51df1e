"""Start the processes of a grid: several on this machine, or an array of jobs on a cluster.

Workers on one machine all run the whole grid and share it by its locks, so none of them waits for another. Knows
processes, devices and job arrays; `runner` does the work, and runs resume themselves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.files.run_files import open_to_write
from core_models.resources import processors
from workbench.evaluation.job_array import Again, ArraySettings, executor_of, submit_array
from workbench.experiments.data import Say, prepare_data
from workbench.experiments.grid import Cell, cells, read_experiment
from workbench.experiments.runner import check_systems, run_experiment
from workbench.jobs import safe_path
from workbench.store.runs import WORKER_LOG, RunError

if TYPE_CHECKING:
    import submitit

POLL_SECONDS = 2.0
INTERRUPT_SECONDS = 15.0
ShowProgress = Callable[[int, int, str], None]  # (done, total, running cells)


def run_in_processes(
    file: Path,
    root: Path,
    files: Path | None,
    devices: Sequence[str],
    say: Say,
    show: ShowProgress,
    minutes: float | None = None,
    only: Sequence[str] = (),
) -> None:
    """Run a grid in one process for each device named (cpu may be named several times), until the whole grid is done.

    The output of workers goes to ROOT/NAME/worker-N.log. An interrupt (Ctrl-C, SIGTERM) stops all of them, and every
    cell stays resumable. Raises RunError if workers failed.
    """
    experiment = read_experiment(file)
    environments = [worker_environment(device, len(devices)) for device in devices]
    check_systems(experiment)
    grid_cells = cells(experiment, root, only)
    prepare_data(experiment, root, files, say)
    command = safe_path.module("workbench.cli", "experiment", "run", str(file), "--runs", str(root))
    command += [part for name in only for part in ("--only", name)]
    command += [] if minutes is None else ["--max-minutes", str(minutes)]
    logs = [root / experiment.name / WORKER_LOG.format(number) for number in range(1, len(devices) + 1)]
    workers: list[subprocess.Popen[bytes]] = []
    with _received_interrupts() as interrupts:
        try:
            for device, environment, log in zip(devices, environments, logs, strict=True):
                workers.append(_start([*command, "--device", device.partition(":")[0]], environment, log))
            last_shown = time.monotonic()
            while not interrupts and any(worker.poll() is None for worker in workers):
                time.sleep(0.1)
                if time.monotonic() - last_shown > POLL_SECONDS:
                    with suppress(OSError):  # a state may vanish while it is read: try again next time
                        _show_all(grid_cells, show)
                    last_shown = time.monotonic()
        finally:
            _stop(workers)
    if interrupts:
        raise KeyboardInterrupt
    for cell in grid_cells:
        say(f"{cell.folder}: {cell.state_text()}")
    failed = [log for worker, log in zip(workers, logs, strict=True) if worker.returncode]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(workers)} processes failed; {failed[0]} ends: {_last_message(failed[0])}"
        )


@contextmanager
def _received_interrupts() -> Iterator[list[int]]:
    """Collect the numbers of SIGINT and SIGTERM signals received meanwhile; ignored interrupts (nohup) stay ignored.

    An exception instead would be lost where Python cannot raise it, as in the destructor of a lock.
    """
    received: list[int] = []
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda number, _: received.append(number)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _start(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a worker in its own session: a terminal's Ctrl-C reaches only this process, which passes it on once."""
    with open_to_write(log, append=True) as sink:  # another process may work on the grid, and write there
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _show_all(grid_cells: Sequence[Cell], show: ShowProgress) -> None:
    """Show the progress in updates if their total is known, else in cells."""
    done = [cell.state == "done" for cell in grid_cells]
    steps = [cell.steps() for cell in grid_cells]
    running = ", ".join(
        f"{cell.name} {step}" for cell, (step, _) in zip(grid_cells, steps, strict=True) if cell.locked()
    )
    totals = [total for _, total in steps if total is not None]
    if len(totals) < len(grid_cells):
        show(sum(done), len(grid_cells), running)
    else:
        progress = zip(done, steps, totals, strict=True)
        show(sum(total if is_done else step for is_done, (step, _), total in progress), sum(totals), running)


def worker_environment(device: str, workers: int = 1) -> dict[str, str]:
    """The environment of a worker: its share of the processors on a CPU, only its own device on CUDA.

    More threads than processors make the workers slower than one thread each.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        threads = max(1, processors() // workers)
        return safe_path.environment(OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", str(threads)))
    if kind != "cuda" or not (index or "0").isdigit():
        raise RunError(f"device {device!r}: name cpu, cuda or cuda:N")
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if visible and int(index or 0) >= len(visible):
        raise RunError(f"device {device}: CUDA_VISIBLE_DEVICES lists {len(visible)} devices, numbered from cuda:0")
    return safe_path.environment(CUDA_VISIBLE_DEVICES=visible[int(index or 0)] if visible else index or "0")


def _stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Interrupt the running workers and wait; a worker that ignores interrupts (nohup) is terminated.

    A worker that goes on is interrupted again: Python cannot raise an interrupt everywhere, e.g. in a destructor.
    """
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN or os.name == "nt"  # which sends no interrupts
    while running := [worker for worker in workers if worker.poll() is None]:
        for worker in running:
            worker.send_signal(signal.SIGTERM if ignored else signal.SIGINT)
        deadline = time.monotonic() + INTERRUPT_SECONDS
        while time.monotonic() < deadline and any(worker.poll() is None for worker in running):
            time.sleep(0.05)


def _last_message(log: Path) -> str:
    """The last message of the command line in a log, or its last line."""
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    _, separator, message = text.rpartition("workbench: ")
    return message if separator else text.rpartition("\n")[2] or "(nothing)"


@dataclass(frozen=True)
class CellJob(Again):
    """A task of the grid's array, which submitit pickles, runs with a cell's name, and queues again in time."""

    file: Path
    root: Path
    device: str
    minutes: float | None

    def __call__(self, cell: str) -> str:
        """Run the cell as far as time allows and return its state in words."""
        experiment = read_experiment(self.file)
        run_experiment(experiment, self.root, None, print, None, self.device, self.minutes, [cell])
        return cells(experiment, self.root, [cell])[0].state_text()


def submit(
    file: Path,
    root: Path,
    files: Path | None,
    say: Say,
    settings: ArraySettings,
    device: str = "auto",
    minutes: float | None = None,
    only: Sequence[str] = (),
) -> list[submitit.Job[str]]:
    """Submit one array with a task for each cell that is not done, after preparing the text here.

    Logs are in ROOT/NAME/jobs. The nodes must see the folders under the same paths. A cell submitted twice is trained
    once: the second task finds it locked or done. Raises RunError without the extra.
    """
    experiment = read_experiment(file)
    check_systems(experiment)
    executor = executor_of(root / experiment.name / "jobs", experiment.name, settings)
    unfinished = [cell for cell in cells(experiment, root, only) if cell.state != "done"]
    prepare_data(experiment, root, files, say)
    job = CellJob(file.resolve(), root.resolve(), device, minutes)
    jobs = submit_array(executor, job, [(cell.name,) for cell in unfinished])
    for cell, task in zip(unfinished, jobs, strict=True):
        say(f"{cell.folder}: job {task.job_id}, log {task.paths.stdout}")
    return jobs
