"""Long work as a process of its own: the same CLI command, its status and log in a folder, so that a page can be
reloaded or the app restarted without losing it. Jobs wait for their turn: a job that has ended begins the next one, and
so does whoever looks at them. Knows folders and a shell; what the command does is the CLI's business.

    STATE/jobs/QUEUE/ID/{job.json, log.txt, exit, cancelled}

Each runs folder has a queue, which lies in this user's own folder of state (`state_folder`) and never in the runs
folder: that may be anybody's, and a job in it would start whatever somebody wrote there.
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

AT_ONCE = "WORKBENCH_JOBS"  # in the environment: how many run at the same time
WAITING, RUNNING, ENDING, DONE = "waiting", "running", "ending", "done"
FAILED, CANCELLED, LOST = "failed", "cancelled", "lost"
AT_WORK = (RUNNING, ENDING)
ACTIVE = (WAITING, *AT_WORK)
UNFINISHED = (FAILED, CANCELLED, LOST)

_TAIL_BYTES = 1 << 14
_BAR = re.compile(r" (\d+)/(\d+)(?= |$)", re.MULTILINE)  # what `workbench.cli.shared.bar` prints
_TOLD_TO_END = (128 + signal.SIGINT, 128 + signal.SIGTERM)
_REFUSED = 2  # the exit code of a command that cannot be used
_LAST_SECOND = 253402300799.0  # of the year 9999, the last that a calendar of the system knows
_LARGEST_NUMBER = 2**31 - 1  # of a process


class JobError(ValueError):
    """A job that cannot be started; the message says why and what to do."""


class _Kept(BaseModel):
    """What job.json holds."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    root: str
    title: str
    arguments: tuple[str, ...]
    process: int = Field(ge=0, le=_LARGEST_NUMBER)
    started: float = Field(ge=0, le=_LAST_SECOND)
    birth: str
    asked: float = Field(ge=0, le=_LAST_SECOND)


@dataclass(frozen=True)
class Job:
    """One command that was asked for: `workbench ARGUMENTS`, on the runs folder `root`.

    While it waits its `process` is 0 and `started` is when it was asked for. `birth` tells its process from a later one
    of the same number.
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
        """As it is typed."""
        return shlex.join(["workbench", *self.arguments])

    @property
    def log(self) -> str:
        """The end of what it said, as much as a page shows; a progress bar's rewritten lines are lines."""
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
        """How much of what its newest progress bar counts is done, 0 to 1; None where no bar has said."""
        counted = [(int(done), int(total)) for done, total in _BAR.findall(self.log)]
        shares = [done / total for done, total in counted if 0 < total >= done]
        return shares[-1] if shares else None

    @property
    def exit_code(self) -> int | None:
        """What the command ended with; None while it has not, or where it could not say."""
        try:
            return int((self.folder / "exit").read_text())
        except (OSError, ValueError):
            return None

    @property
    def state(self) -> str:
        """waiting, running, ending (cancelled, not gone yet), done, failed, cancelled, or lost: gone, no result."""
        code, cancelled = self.exit_code, (self.folder / "cancelled").is_file()
        if code is None and not self.process:
            now = self.now
            return now.state if now.process else CANCELLED if cancelled else WAITING
        if code is None:
            alive = self._shell.alive  # asked before: what ends has written its result
            code = self.exit_code
            if code is None:
                return (ENDING if cancelled else RUNNING) if alive else (CANCELLED if cancelled else LOST)
        return DONE if code == 0 else CANCELLED if cancelled else FAILED

    @property
    def now(self) -> Job:
        """The job as its folder has it: one that waited may have begun since."""
        return _read(self.folder, self.root) or self

    @property
    def _shell(self) -> Shell:
        return Shell(self.process, self.birth, str(self.folder))

    @property
    def place(self) -> int:
        """Its place in the queue, from 1; 0 where it does not wait."""
        queue = [other.folder for other in waiting(self.root)]
        return queue.index(self.folder) + 1 if self.folder in queue else 0

    @property
    def ended(self) -> float:
        """When its result was written; of one without, when it last said something or was cancelled."""
        times = {}
        for name in ("exit", "cancelled", "log.txt"):
            with contextlib.suppress(OSError):
                times[name] = (self.folder / name).stat().st_mtime
        return times.get("exit", max([self.started, *times.values()]))

    def cancel(self) -> None:
        """Take it out of the queue. Of one that runs, ask the command and everything it started to end, as Ctrl-C does;
        a second time: end them at once."""
        read_only.check()
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # a full disk must not keep a process alive
                held.enter_context(_alone(self.root))
            job = self.now
            state = job.state
            if state not in ACTIVE:  # the number may be another process's by now
                return
            with contextlib.suppress(OSError):
                (job.folder / "cancelled").touch()
            if state in AT_WORK:
                job._shell.signal(signal.SIGTERM if state == RUNNING else signal.SIGKILL)


def title_of(arguments: Sequence[str]) -> str:
    """A command in short: folders by their last name."""
    return " ".join(Path(word).name if os.sep in word else word for word in arguments)


def at_once() -> int:
    """How many jobs run at the same time: one, unless the environment says another number."""
    said = os.environ.get(AT_ONCE, "")
    return max(1, int(said)) if said.isdecimal() else 1


def start(root: Path, arguments: Sequence[str], title: str = "") -> Job:
    """Run `workbench ARGUMENTS` in the background when its turn comes; the job that has this command already, if there
    is one. Raises JobError for a command that is not in `allowed_commands`, and where nothing can be kept;
    ReadOnlyError.
    """
    read_only.check()
    arguments = tuple(arguments)
    if not allowed_commands.may_start(arguments, root):
        raise JobError(
            f"{shlex.join(['workbench', *arguments])}: a page starts certain commands alone, on runs of {root}; start "
            "this one on a command line"
        )
    try:
        queue = state_folder.make(queue_of(root))
        with _alone(root):
            newest = latest(root, arguments)
            if newest is not None and newest.state in ACTIVE:
                return newest
            asked = _ask(queue, root, arguments, title or title_of(arguments))
            _begin_next(root)
            return asked.now
    except OSError as error:
        said = f"{error.filename}: {(error.strerror or str(error)).lower()}" if error.filename else str(error)
        raise JobError(
            f"{said}; no job can be started. Jobs are kept in a folder of yours: make it writable, or name another one "
            f"in {state_folder.HOME}"
        ) from error


def again(job: Job) -> Job:
    """Start the command of a job once more."""
    arguments, _ = renamed_commands.current(job.arguments)
    return start(job.root, arguments, job.title)


def waiting(root: Path) -> list[Job]:
    """The queue: the jobs that wait, the next one first."""
    return [job for job in reversed(list_jobs(root)) if not job.process and job.state == WAITING]


def go_on(root: Path) -> None:
    """Begin the jobs whose turn has come: where one was killed, or the machine went down, nobody else does."""
    if not read_only.active() and waiting(root):
        with contextlib.suppress(OSError), _alone(root):
            _begin_next(root)


def queue_of(root: Path) -> Path:
    """Where the jobs of a runs folder are kept, whatever name it is opened by. Raises OSError without a home."""
    return state_folder.state_folder() / "jobs" / hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24]


def _alone(root: Path) -> FileLock:
    """Held by whoever changes the queue: two tabs, two apps on one folder, a job that has ended."""
    return FileLock(queue_of(root) / ".lock")


def _ask(queue: Path, root: Path, arguments: tuple[str, ...], title: str) -> Job:
    now = time.time()
    job = Job(_own_folder(queue, arguments[0]), root.resolve(), title, arguments, 0, now, asked=now)
    _write(job)
    return job


def _begin_next(root: Path) -> None:
    at_work = sum(job.state in AT_WORK for job in list_jobs(root))
    for job in waiting(root)[: max(0, at_once() - at_work)]:
        _begin(job)


def _begin(job: Job) -> None:
    if not allowed_commands.may_start(job.arguments, job.root):
        write_atomic(job.folder / "log.txt", f"workbench: {job.command} is not one that a page may start\n")
        write_atomic(job.folder / "exit", f"{_REFUSED}\n")
        return
    part, result = (shlex.quote(str(job.folder / name)) for name in ("exit.part", "exit"))
    command = shlex.join(safe_path.module("workbench.cli", *job.arguments))
    hand_on = shlex.join(safe_path.module("workbench.jobs.queue", str(job.root), job.folder.name))
    # The trap lets the shell outlive a command that is cancelled, to write its result and to hand its turn on.
    script = f"trap : TERM; {command} < /dev/null; echo $? > {part}; mv {part} {result}; {hand_on} &"
    environment = safe_path.environment(**allocator_settings(), PYTHONUNBUFFERED="1")
    with processes.begun(script, job.folder / "log.txt", environment, str(job.folder)) as shell:
        _write(replace(job, process=shell.number, started=time.time(), birth=shell.birth))


def _hand_on(root: Path, name: str) -> None:
    """What a job does last: the turn goes to the next one. Not where it was told to end and nobody cancelled it: that
    is a machine going down, and what waits is begun by the app when it is opened again."""
    job = _read(queue_of(root) / name, root)
    if job is None or job.exit_code not in _TOLD_TO_END or job.state == CANCELLED:
        go_on(root)


def _own_folder(queue: Path, name: str) -> Path:
    began, number = time.strftime("%Y%m%d-%H%M%S"), 1
    own = queue / f"{began}-{name}"
    while own.exists():
        number += 1
        own = queue / f"{began}-{name}-{number}"
    own.mkdir()
    return own


def _write(job: Job) -> None:
    """Whole or not at all: others read it without the lock."""
    kept = {name: value for name, value in asdict(job).items() if name != "folder"} | {"root": str(job.root)}
    part = job.folder / "job.json.part"
    part.write_text(_Kept(**kept).model_dump_json(), encoding="utf-8")
    os.replace(part, job.folder / "job.json")


def _read(folder: Path, root: Path) -> Job | None:
    """The job of a folder; None where it holds none, or that of another runs folder."""
    with contextlib.suppress(OSError, ValidationError):
        kept = _Kept.model_validate_json((folder / "job.json").read_bytes())
        if Path(kept.root) == root.resolve():
            return Job(folder, **{**kept.model_dump(), "root": Path(kept.root)})
    return None


def list_jobs(root: Path) -> list[Job]:
    """All jobs of a runs folder, the one asked for last first; folders that hold no job are passed over. An app that is
    for reading only has none."""
    if read_only.active() or not state_folder.is_own():
        return []
    found = [job for path in queue_of(root).glob("*/job.json") if (job := _read(path.parent, root)) is not None]
    return sorted(found, key=lambda job: (job.asked, job.folder.name), reverse=True)


def latest(root: Path, arguments: Sequence[str]) -> Job | None:
    """The newest job of this very command."""
    return next((job for job in list_jobs(root) if job.arguments == tuple(arguments)), None)


def clear(root: Path) -> None:
    """Forget the jobs that have ended; what they made stays."""
    for job in list_jobs(root):
        if job.state not in ACTIVE:
            shutil.rmtree(job.folder, ignore_errors=True)


if __name__ == "__main__":
    # A shell makes what it puts into the background deaf to interrupts, and what that begins would inherit it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _hand_on(Path(sys.argv[1]), sys.argv[2])
