"""Queue of jobs: CLI commands as separate processes, with status and log in a folder.

A job survives a reload of the page and a restart of the app. Jobs wait for their turn: a job that ends starts the next
one, and so does the app when it lists them. Knows folders and a shell, not what the commands do.

    STATE/jobs/QUEUE/ID/{job.json, log.txt, exit, cancelled}

Each runs folder has a queue in this user's own state folder (`state_folder`), never in the runs folder: others may
write there, and a job file in it would start a command of theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core_models.files.atomic_files import write_atomic
from core_models.resources import allocator_settings
from workbench.jobs import allowed_commands, processes, renamed_commands, safe_path, state_folder
from workbench.jobs.processes import Shell
from workbench.store import read_only

PARALLEL_JOBS = "WORKBENCH_JOBS"  # environment variable: number of jobs that run at the same time
WAITING, RUNNING, ENDING, DONE = "waiting", "running", "ending", "done"
FAILED, CANCELLED, LOST = "failed", "cancelled", "lost"
AT_WORK = (RUNNING, ENDING)
ACTIVE = (WAITING, *AT_WORK)
UNFINISHED = (FAILED, CANCELLED, LOST)

_TAIL_BYTES = 1 << 14
_BAR = re.compile(r" (\d+)/(\d+)(?= |$)", re.MULTILINE)  # what `workbench.cli.shared.bar` prints
_INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
_REFUSED = 2  # the exit code of a refused command
_MAX_TIME = 253402300799.0  # of the year 9999, the last that system calendars support
_MAX_PROCESS = 2**31 - 1  # of a process id


class JobError(ValueError):
    """A job that cannot be started; the message says why and what to do."""


class _Record(BaseModel):
    """The content of job.json."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    root: str
    title: str
    arguments: tuple[str, ...]
    process: int = Field(ge=0, le=_MAX_PROCESS)
    started: float = Field(ge=0, le=_MAX_TIME)
    birth: str
    asked: float = Field(ge=0, le=_MAX_TIME)


@dataclass(frozen=True)
class Job:
    """One requested command: `workbench ARGUMENTS` on the runs folder `root`.

    asked: time of the request. While it waits, `process` is 0 and `started` the time of the request. `birth`
    distinguishes its process from a later one of the same number.
    """

    folder: Path
    root: Path
    title: str
    arguments: tuple[str, ...]
    process: int
    started: float
    birth: str = ""
    asked: float = 0.0

    @property
    def command(self) -> str:
        """The command line."""
        return shlex.join(["workbench", *self.arguments])

    @property
    def log(self) -> str:
        """The end of the log, as much as a page shows; rewritten lines of a progress bar are separate lines."""
        try:
            with (self.folder / "log.txt").open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                return file.read().decode("utf-8", errors="replace").replace("\r", "\n")
        except OSError:
            return ""

    @property
    def last_line(self) -> str:
        """The newest line of the log."""
        lines = [line for line in self.log.split("\n") if line.strip()]
        return lines[-1] if lines else ""

    @property
    def progress(self) -> float | None:
        """The progress of its newest progress bar from 0 to 1; None without a bar."""
        bars = [(int(done), int(total)) for done, total in _BAR.findall(self.log)]
        shares = [done / total for done, total in bars if 0 < total >= done]
        return shares[-1] if shares else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command; None while it runs, or if it was not written."""
        try:
            return int((self.folder / "exit").read_text())
        except (OSError, ValueError):
            return None

    @property
    def state(self) -> str:
        """One of waiting, running, ending (cancelled, still alive), done, failed, cancelled, lost (gone, no result)."""
        code, cancelled = self.exit_code, (self.folder / "cancelled").is_file()
        if code is None and not self.process:
            current = self.current
            return current.state if current.process else CANCELLED if cancelled else WAITING
        if code is None:
            alive = self._shell.alive  # checked before the result is read: a process writes it before it ends
            code = self.exit_code
            if code is None:
                return (ENDING if cancelled else RUNNING) if alive else (CANCELLED if cancelled else LOST)
        return DONE if code == 0 else CANCELLED if cancelled else FAILED

    @property
    def current(self) -> Job:
        """The job read again from its folder: a waiting job may have started since."""
        return _read(self.folder, self.root) or self

    @property
    def _shell(self) -> Shell:
        return Shell(self.process, self.birth, str(self.folder))

    @property
    def position(self) -> int:
        """Its position in the queue, from 1; 0 if it does not wait."""
        queue = [job.folder for job in waiting(self.root)]
        return queue.index(self.folder) + 1 if self.folder in queue else 0

    @property
    def ended(self) -> float:
        """The time of its result; without a result the time of its last output or cancellation."""
        times = {}
        for name in ("exit", "cancelled", "log.txt"):
            with contextlib.suppress(OSError):
                times[name] = (self.folder / name).stat().st_mtime
        return times.get("exit", max([self.started, *times.values()]))

    def cancel(self) -> None:
        """Remove a waiting job from the queue; interrupt a running one and its children, as Ctrl-C does.

        A second call ends them at once.
        """
        read_only.check()
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # a full disk must not keep a process alive
                stack.enter_context(_lock_of(self.root))
            job = self.current
            state = job.state
            if state not in ACTIVE:  # its process number may belong to another process by now
                return
            with contextlib.suppress(OSError):
                (job.folder / "cancelled").touch()
            if state in AT_WORK:
                job._shell.signal(signal.SIGTERM if state == RUNNING else signal.SIGKILL)


def title_of(arguments: Sequence[str]) -> str:
    """A short title of a command, with folders by their last name."""
    return " ".join(Path(word).name if os.sep in word else word for word in arguments)


def parallel_jobs() -> int:
    """The number of jobs that run at the same time, from the environment; default 1."""
    setting = os.environ.get(PARALLEL_JOBS, "")
    return max(1, int(setting)) if setting.isdecimal() else 1


def start(root: Path, arguments: Sequence[str], title: str = "") -> Job:
    """Add `workbench ARGUMENTS` to the queue, or return the active job of this command.

    Raises JobError for a command that is not in `allowed_commands` and if the state folder cannot be written, and
    ReadOnlyError.
    """
    read_only.check()
    arguments = tuple(arguments)
    if not allowed_commands.may_start(arguments, root):
        raise JobError(
            f"{shlex.join(['workbench', *arguments])}: pages may start only certain commands, on runs of {root}; "
            "start this one on a command line"
        )
    try:
        queue = state_folder.make(queue_of(root))
        with _lock_of(root):
            newest = latest(root, arguments)
            if newest is not None and newest.state in ACTIVE:
                return newest
            job = _enqueue(queue, root, arguments, title or title_of(arguments))
            _start_next(root)
            return job.current
    except OSError as error:
        problem = f"{error.filename}: {(error.strerror or str(error)).lower()}" if error.filename else str(error)
        raise JobError(
            f"{problem}; no job can be started. Jobs are stored in your own folder: make it writable, or "
            f"name another one in {state_folder.HOME}"
        ) from error


def restart(job: Job) -> Job:
    """Add the command of a job to the queue again."""
    arguments, _ = renamed_commands.current(job.arguments)
    return start(job.root, arguments, job.title)


def waiting(root: Path) -> list[Job]:
    """The waiting jobs, the next one first."""
    return [job for job in reversed(list_jobs(root)) if not job.process and job.state == WAITING]


def start_waiting(root: Path) -> None:
    """Start the waiting jobs whose turn has come; a killed job or a shutdown starts no next job."""
    if not read_only.active() and waiting(root):
        with contextlib.suppress(OSError), _lock_of(root):
            _start_next(root)


def queue_of(root: Path) -> Path:
    """The folder of the jobs of a runs folder, independent of links to it. Raises OSError without a home folder."""
    return state_folder.state_folder() / "jobs" / hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24]


def _lock_of(root: Path) -> FileLock:
    """The lock for changes of the queue by several tabs, apps and ending jobs."""
    return FileLock(queue_of(root) / ".lock")


def _enqueue(queue: Path, root: Path, arguments: tuple[str, ...], title: str) -> Job:
    now = time.time()
    job = Job(_new_folder(queue, arguments[0]), root.resolve(), title, arguments, 0, now, asked=now)
    _write(job)
    return job


def _start_next(root: Path) -> None:
    at_work = sum(job.state in AT_WORK for job in list_jobs(root))
    for job in waiting(root)[: max(0, parallel_jobs() - at_work)]:
        _start_process(job)


def _start_process(job: Job) -> None:
    if not allowed_commands.may_start(job.arguments, job.root):
        write_atomic(job.folder / "log.txt", f"workbench: {job.command} may not be started by a page\n")
        write_atomic(job.folder / "exit", f"{_REFUSED}\n")
        return
    part, result = (shlex.quote(str(job.folder / name)) for name in ("exit.part", "exit"))
    command = shlex.join(safe_path.module("workbench.cli", *job.arguments))
    finish_turn = shlex.join(safe_path.module("workbench.jobs.queue", str(job.root), job.folder.name))
    # The trap lets the shell outlive a cancelled command, to write its result and to start the next job.
    script = f"trap : TERM; {command} < /dev/null; echo $? > {part}; mv {part} {result}; {finish_turn} &"
    environment = safe_path.environment(**allocator_settings(), PYTHONUNBUFFERED="1")
    with processes.begun(script, job.folder / "log.txt", environment, str(job.folder)) as shell:
        _write(replace(job, process=shell.number, started=time.time(), birth=shell.birth))


def _finish_turn(root: Path, name: str) -> None:
    """Start the next job, as the last action of a job.

    Not if the job was interrupted without being cancelled: then the machine shuts down, and the app starts the waiting
    jobs when it is opened again.
    """
    job = _read(queue_of(root) / name, root)
    if job is None or job.exit_code not in _INTERRUPTED or job.state == CANCELLED:
        start_waiting(root)


def _new_folder(queue: Path, name: str) -> Path:
    timestamp, number = time.strftime("%Y%m%d-%H%M%S"), 1
    folder = queue / f"{timestamp}-{name}"
    while folder.exists():
        number += 1
        folder = queue / f"{timestamp}-{name}-{number}"
    folder.mkdir()
    return folder


def _write(job: Job) -> None:
    """Write job.json atomically, since it is read without the lock."""
    record = {name: value for name, value in asdict(job).items() if name != "folder"} | {"root": str(job.root)}
    part = job.folder / "job.json.part"
    part.write_text(_Record(**record).model_dump_json(), encoding="utf-8")
    os.replace(part, job.folder / "job.json")


def _read(folder: Path, root: Path) -> Job | None:
    """The job of a folder; None if it has none, or one of another runs folder."""
    with contextlib.suppress(OSError, ValidationError):
        record = _Record.model_validate_json((folder / "job.json").read_bytes())
        if Path(record.root) == root.resolve():
            return Job(folder, **{**record.model_dump(), "root": Path(record.root)})
    return None


def list_jobs(root: Path) -> list[Job]:
    """All jobs of a runs folder, the newest request first; empty in read-only mode.

    Folders without a job are skipped.
    """
    if read_only.active() or not state_folder.is_own():
        return []
    jobs = [job for path in queue_of(root).glob("*/job.json") if (job := _read(path.parent, root)) is not None]
    return sorted(jobs, key=lambda job: (job.asked, job.folder.name), reverse=True)


def latest(root: Path, arguments: Sequence[str]) -> Job | None:
    """The newest job of exactly this command, or None."""
    return next((job for job in list_jobs(root) if job.arguments == tuple(arguments)), None)


def clear(root: Path) -> None:
    """Remove the records of ended jobs; their results stay."""
    for job in list_jobs(root):
        if job.state not in ACTIVE:
            shutil.rmtree(job.folder, ignore_errors=True)


if __name__ == "__main__":
    # A shell makes its background processes ignore interrupts, which their children would inherit.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _finish_turn(Path(sys.argv[1]), sys.argv[2])
