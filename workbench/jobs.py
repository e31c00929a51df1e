"""Long work as a process of its own: the same CLI command, its status and log in a folder, so that a page can be
reloaded or the app restarted without losing it. Jobs wait for their turn: a job that has ended begins the next one, and
so does whoever looks at them. Knows folders and a shell; what the command does is the CLI's business.

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
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from core_models.resources import allocator_settings
from workbench import processes

FOLDER = ".jobs"  # below the runs folder
AT_ONCE = "WORKBENCH_JOBS"  # in the environment: how many run at the same time
WAITING, RUNNING, ENDING, DONE = "waiting", "running", "ending", "done"
FAILED, CANCELLED, LOST = "failed", "cancelled", "lost"
AT_WORK = (RUNNING, ENDING)
ACTIVE = (WAITING, *AT_WORK)
UNFINISHED = (FAILED, CANCELLED, LOST)

# What a page may start: commands that need no more words than it knows.
STARTABLE = (
    "demo", "resume", "translate", "trace", "evaluate", "beam-sizes", "rescore", "adequacy", "aligner", "contrast",
)  # fmt: skip
_LEFT_TO_THE_READER = {"DATA", "FILE", "NAME"}
_TAIL_BYTES = 1 << 14
_BAR = re.compile(r" (\d+)/(\d+)(?= |$)", re.MULTILINE)  # what `workbench.cli.shared.bar` prints
_TOLD_TO_END = (128 + signal.SIGINT, 128 + signal.SIGTERM)


class JobError(ValueError):
    """A job that cannot be started; the message says why and what to do."""


@dataclass(frozen=True)
class Job:
    """One command that was asked for: `workbench ARGUMENTS`.

    While it waits its `process` is 0 and `started` is when it was asked for. `birth` tells its process from a later one
    of the same number, where the system says when a process began.
    """

    folder: Path
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
        if not self.process:
            now = self.now
            return now.state if now.process else CANCELLED if (self.folder / "cancelled").is_file() else WAITING
        alive = processes.alive(self.process, self.birth)  # asked first: what ends has written its result before
        code, cancelled = self.exit_code, (self.folder / "cancelled").is_file()
        if code is not None:
            return DONE if code == 0 else CANCELLED if cancelled else FAILED
        if alive:
            return ENDING if cancelled else RUNNING
        return CANCELLED if cancelled else LOST

    @property
    def now(self) -> Job:
        """The job as its folder has it: one that waited may have begun since."""
        return _read(self.folder) or self

    @property
    def place(self) -> int:
        """Its place in the queue, from 1; 0 where it does not wait."""
        queue = [other.folder for other in waiting(self.folder.parent)]
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
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # a full disk must not keep a process alive
                held.enter_context(_alone(self.folder.parent))
            job = self.now
            state = job.state
            if state not in ACTIVE:  # the number may be another process's by now
                return
            with contextlib.suppress(OSError):
                (job.folder / "cancelled").touch()
            if state in AT_WORK:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job.process, signal.SIGTERM if state == RUNNING else signal.SIGKILL)


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


def at_once() -> int:
    """How many jobs run at the same time: one, unless the environment says another number."""
    said = os.environ.get(AT_ONCE, "")
    return max(1, int(said)) if said.isdecimal() else 1


def start(folder: Path, arguments: Sequence[str], title: str = "") -> Job:
    """Run `workbench ARGUMENTS` in the background when its turn comes; the job that has this command already, if there
    is one. Raises JobError where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            newest = latest(folder, arguments)
            if newest is not None and newest.state in ACTIVE:
                return newest
            asked = _ask(folder, tuple(arguments), title or title_of(arguments))
            _begin_next(folder)
            return asked.now
    except OSError as error:
        raise JobError(
            f"{error.filename or folder}: {(error.strerror or str(error)).lower()}; no job can be started. Jobs are "
            "kept in the runs folder: make it writable, or open the app with another one: workbench app --runs FOLDER"
        ) from error


def again(job: Job) -> Job:
    """Start the command of a job once more."""
    return start(job.folder.parent, job.arguments, job.title)


def waiting(folder: Path) -> list[Job]:
    """The queue: the jobs that wait, the next one first."""
    return [job for job in reversed(list_jobs(folder)) if not job.process and job.state == WAITING]


def go_on(folder: Path) -> None:
    """Begin the jobs whose turn has come: where one was killed, or the machine went down, nobody else does."""
    if waiting(folder):
        with contextlib.suppress(OSError), _alone(folder):
            _begin_next(folder)


def _alone(folder: Path) -> FileLock:
    """Held by whoever changes the queue: two tabs, two apps on one folder, a job that has ended."""
    return FileLock(folder / ".lock")


def _ask(folder: Path, arguments: tuple[str, ...], title: str) -> Job:
    now = time.time()
    job = Job(_own_folder(folder, arguments[0]), title, arguments, 0, now, asked=now)
    _write(job)
    return job


def _begin_next(folder: Path) -> None:
    at_work = sum(job.state in AT_WORK for job in list_jobs(folder))
    for job in waiting(folder)[: max(0, at_once() - at_work)]:
        _begin(job)


def _begin(job: Job) -> None:
    part, result = (shlex.quote(str(job.folder / name)) for name in ("exit.part", "exit"))
    command = shlex.join([sys.executable, "-m", "workbench.cli", *job.arguments])
    hand_on = shlex.join([sys.executable, "-m", "workbench.jobs", str(job.folder)])
    # The trap lets the shell outlive a command that is cancelled, to write its result and to hand its turn on.
    script = f"trap : TERM; {command} < /dev/null; echo $? > {part}; mv {part} {result}; {hand_on} &"
    environment = {**os.environ, **allocator_settings(), "PYTHONUNBUFFERED": "1"}
    with processes.begun(script, job.folder / "log.txt", environment) as process:
        birth = processes.birth_of(process)
        _write(replace(job, process=process, started=time.time(), birth=birth))


def _hand_on(ended: Path) -> None:
    """What a job does last: the turn goes to the next one. Not where it was told to end and nobody cancelled it: that
    is a machine going down, and what waits is begun by the app when it is opened again."""
    job = _read(ended)
    if job is None or job.exit_code not in _TOLD_TO_END or job.state == CANCELLED:
        go_on(ended.parent)


def _own_folder(folder: Path, name: str) -> Path:
    began, number = time.strftime("%Y%m%d-%H%M%S"), 1
    own = folder / f"{began}-{name}"
    while own.exists():
        number += 1
        own = folder / f"{began}-{name}-{number}"
    own.mkdir()
    return own


def _write(job: Job) -> None:
    """Whole or not at all: others read it without the lock."""
    part = job.folder / "job.json.part"
    part.write_text(json.dumps({**asdict(job), "folder": job.folder.name}), encoding="utf-8")
    os.replace(part, job.folder / "job.json")


def _read(folder: Path) -> Job | None:
    """The job of a folder; None where it holds none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        arguments = tuple(map(str, stored["arguments"]))
        began, birth = float(stored["started"]), str(stored.get("birth", ""))
        asked = float(stored.get("asked", began))
        return Job(folder, str(stored["title"]), arguments, int(stored["process"]), began, birth, asked)
    return None


def list_jobs(folder: Path) -> list[Job]:
    """All jobs, the one asked for last first; folders that hold no job are passed over."""
    found = [job for path in folder.glob("*/job.json") if (job := _read(path.parent)) is not None]
    return sorted(found, key=lambda job: (job.asked, job.folder.name), reverse=True)


def latest(folder: Path, arguments: Sequence[str]) -> Job | None:
    """The newest job of this very command."""
    return next((job for job in list_jobs(folder) if job.arguments == tuple(arguments)), None)


def clear(folder: Path) -> None:
    """Forget the jobs that have ended; what they made stays."""
    for job in list_jobs(folder):
        if job.state not in ACTIVE:
            shutil.rmtree(job.folder, ignore_errors=True)


if __name__ == "__main__":
    # A shell makes what it puts into the background deaf to interrupts, and what that begins would inherit it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _hand_on(Path(sys.argv[1]))
