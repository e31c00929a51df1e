"""Long work as a process of its own: the same CLI command, its status and log in a folder, so that a page can be
reloaded or the app restarted without losing it. Knows processes and files; what the command does is the CLI's business.

    JOBS/ID/{job.json, log.txt, exit, cancelled}
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from core_models.resources import allocator_settings

FOLDER = ".jobs"  # below the runs folder
RUNNING, ENDING, DONE, FAILED, CANCELLED, LOST = "running", "ending", "done", "failed", "cancelled", "lost"
ACTIVE = (RUNNING, ENDING)
UNFINISHED = (FAILED, CANCELLED, LOST)

# What a page may start: commands that need no more words than it knows.
STARTABLE = ("demo", "resume", "translate", "trace", "evaluate", "beam-sizes", "adequacy", "aligner", "contrast")
_LEFT_TO_THE_READER = {"DATA", "FILE", "NAME"}
_TAIL_BYTES = 1 << 14
_BAR = re.compile(r" (\d+)/(\d+)(?= |$)", re.MULTILINE)  # what `workbench.cli.shared.bar` prints
_PROCESSES = Path("/proc")


class JobError(ValueError):
    """A job that cannot be started; the message says why and what to do."""


@dataclass(frozen=True)
class Job:
    """One command that was started: `workbench ARGUMENTS`.

    `birth` tells its process from a later one of the same number, where the system says when a process began.
    """

    folder: Path
    title: str
    arguments: tuple[str, ...]
    process: int
    started: float
    birth: str = ""

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
        """running, ending (cancelled, not gone yet), done, failed, cancelled, or lost: gone without a result."""
        alive = _alive(self.process, self.birth)  # asked first: a process that ends has written its result before
        code, cancelled = self.exit_code, (self.folder / "cancelled").is_file()
        if code is not None:
            return DONE if code == 0 else CANCELLED if cancelled else FAILED
        if alive:
            return ENDING if cancelled else RUNNING
        return CANCELLED if cancelled else LOST

    @property
    def ended(self) -> float:
        """When its result was written; of one without, when it last said something or was cancelled."""
        times = {}
        for name in ("exit", "cancelled", "log.txt"):
            with contextlib.suppress(OSError):
                times[name] = (self.folder / name).stat().st_mtime
        return times.get("exit", max([self.started, *times.values()]))

    def cancel(self) -> None:
        """Ask the command and everything it started to end, as Ctrl-C does; a second time: end them at once."""
        state = self.state
        if state not in ACTIVE:  # the number may be another process's by now
            return
        with contextlib.suppress(OSError):  # a full disk must not keep a process alive
            (self.folder / "cancelled").touch()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGTERM if state == RUNNING else signal.SIGKILL)


def startable(line: str) -> tuple[str, ...]:
    """The arguments of a command line that a page may start: one of our own commands, with no word left to the reader
    (DATA, FILE, NAME); else none."""
    try:
        program, name, *others = shlex.split(line)
    except ValueError:  # a quotation mark that is not closed, or fewer than two words
        return ()
    left = _LEFT_TO_THE_READER & {Path(word).name for word in others}
    return (name, *others) if program == "workbench" and name in STARTABLE and not left else ()


def title_of(arguments: Sequence[str]) -> str:
    """A command in short: folders by their last name."""
    return " ".join(Path(word).name if os.sep in word else word for word in arguments)


def start(folder: Path, arguments: Sequence[str], title: str = "") -> Job:
    """Start `workbench ARGUMENTS` in the background; the job that runs this command already, if there is one.

    Raises JobError where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # two tabs, or two apps on one folder
            newest = latest(folder, arguments)
            if newest is not None and newest.state in ACTIVE:
                return newest
            return _begin(folder, tuple(arguments), title or title_of(arguments))
    except OSError as error:
        raise JobError(
            f"{error.filename or folder}: {(error.strerror or str(error)).lower()}; no job can be started. Jobs are "
            "kept in the runs folder: make it writable, or open the app with another one: workbench app --runs FOLDER"
        ) from error


def again(job: Job) -> Job:
    """Start the command of a job once more."""
    return start(job.folder.parent, job.arguments, job.title)


def _begin(folder: Path, arguments: tuple[str, ...], title: str) -> Job:
    own = _own_folder(folder, arguments[0])
    part, result = (shlex.quote(str(own / name)) for name in ("exit.part", "exit"))
    command = shlex.join([sys.executable, "-m", "workbench.cli", *arguments])
    with (own / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"{command}; echo $? > {part}; mv {part} {result}"],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **allocator_settings(), "PYTHONUNBUFFERED": "1"},
        )
    found = _looked_up(process.pid)
    job = Job(own, title, arguments, process.pid, time.time(), found.birth if found else "")
    (own / "job.json").write_text(json.dumps({**asdict(job), "folder": own.name}), encoding="utf-8")
    return job


def _own_folder(folder: Path, name: str) -> Path:
    began, number = time.strftime("%Y%m%d-%H%M%S"), 1
    own = folder / f"{began}-{name}"
    while own.exists():
        number += 1
        own = folder / f"{began}-{name}-{number}"
    own.mkdir()
    return own


def list_jobs(folder: Path) -> list[Job]:
    """All jobs, the newest first; folders that hold no job are passed over."""
    found = []
    for path in folder.glob("*/job.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads(path.read_text(encoding="utf-8"))
            arguments = tuple(map(str, stored["arguments"]))
            began, birth = float(stored["started"]), str(stored.get("birth", ""))
            found.append(Job(path.parent, str(stored["title"]), arguments, int(stored["process"]), began, birth))
    return sorted(found, key=lambda job: (job.started, job.folder.name), reverse=True)


def latest(folder: Path, arguments: Sequence[str]) -> Job | None:
    """The newest job of this very command."""
    return next((job for job in list_jobs(folder) if job.arguments == tuple(arguments)), None)


def clear(folder: Path) -> None:
    """Forget the jobs that have ended; what they made stays."""
    for job in list_jobs(folder):
        if job.state not in ACTIVE:
            shutil.rmtree(job.folder, ignore_errors=True)


class _Process(NamedTuple):
    """What the system says of a process; `birth` is one of a kind, also across restarts of the machine."""

    living: bool
    group: int
    birth: str


def _alive(process: int, birth: str) -> bool:
    """Does the process live, or one that it started? Another one that got its number since is not meant."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)  # our own child that has ended would stay in the table
    if not (_PROCESSES / "self" / "stat").is_file():  # such a system does not say when a process began
        return _answers(process)
    found = _looked_up(process)
    if found is not None and found.living:
        return birth in ("", found.birth)
    numbers = (int(path.name) for path in _PROCESSES.glob("[0-9]*"))
    return any(one.living and one.group == process for one in map(_looked_up, numbers) if one is not None)


def _answers(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _looked_up(process: int) -> _Process | None:
    """The process of a number, from the table that Linux keeps; None where there is none."""
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        state, _, group, *rest = text.rpartition(")")[2].split()  # its name stands before, with whatever it holds
        return _Process(state not in "ZX", int(group), f"{_boot()} {rest[16]}")
    except (OSError, ValueError, IndexError):
        return None


@cache
def _boot() -> str:
    """Which start of the machine this is: times of birth count from it."""
    try:
        return (_PROCESSES / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""
