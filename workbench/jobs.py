"""Long work as a process of its own: the same CLI command, its status and log in a folder, so that a page can be
reloaded or the app restarted without losing it. Knows processes and files; what the command does is the CLI's business.

    JOBS/ID/{job.json, log.txt, exit}
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from core_models.resources import allocator_settings

CANCELLED = "cancelled"


@dataclass(frozen=True)
class Job:
    """One command that was started. `state` is running, done, failed, cancelled, or lost: its process is gone and
    left no result."""

    folder: Path
    title: str
    command: tuple[str, ...]
    process: int
    started: float

    @property
    def log(self) -> str:
        path = self.folder / "log.txt"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    @property
    def last_line(self) -> str:
        """The newest line of the log; a progress bar rewrites its line, so the last rewriting counts."""
        lines = [line for line in self.log.replace("\r", "\n").split("\n") if line.strip()]
        return lines[-1] if lines else ""

    @property
    def state(self) -> str:
        alive = _alive(self.process)  # asked first: a process that ends has written its result before
        path = self.folder / "exit"
        if path.is_file() and (text := path.read_text().strip()):
            return {"0": "done", CANCELLED: CANCELLED}.get(text, "failed")
        return "running" if alive else "lost"

    def cancel(self) -> None:
        """End the command and everything it started."""
        if self.state == "running":
            os.killpg(self.process, signal.SIGTERM)
            (self.folder / "exit").write_text(CANCELLED)


def start(folder: Path, title: str, arguments: Sequence[str], name: str) -> Job:
    """Start `workbench ARGUMENTS` in the background; `name` becomes its folder below `folder`."""
    own = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
    own.mkdir(parents=True)
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    part, result = (shlex.quote(str(own / name)) for name in ("exit.part", "exit"))
    script = f"{shlex.join(command)}; echo $? > {part}; mv {part} {result}"
    with (own / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **allocator_settings(), "PYTHONUNBUFFERED": "1"},
        )
    job = Job(own, title, tuple(command), process.pid, time.time())
    described = {**asdict(job), "folder": own.name}
    (own / "job.json").write_text(json.dumps(described), encoding="utf-8")
    return job


def list_jobs(folder: Path) -> list[Job]:
    """All jobs, the newest first; folders that hold no job are passed over."""
    found = []
    for path in sorted(folder.glob("*/job.json"), reverse=True):
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            found.append(
                Job(
                    path.parent,
                    stored["title"],
                    tuple(stored["command"]),
                    int(stored["process"]),
                    float(stored["started"]),
                )
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _alive(process: int) -> bool:
    try:
        if os.waitpid(process, os.WNOHANG)[0] == process:  # our own child that has ended
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
