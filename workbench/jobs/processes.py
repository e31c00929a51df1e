"""Shells that are started for good, and whether one is still there, or something that it started.

The number of a process alone does not say, since numbers are given away again: a shell is known by its birth, and what
it started by a mark in the environment. What is known by neither is never signalled. Knows processes, no job.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, cast

import psutil

from workbench.store import read_only

MARK = "WORKBENCH_JOB"  # in the environment of a shell and of all that it starts
_TABLE = Path("/proc")  # of Linux, where births count from the start of the machine and no clock can move them
_FIRST = 2  # 0 and 1 are the system's own; as groups they mean our own one and, negated, everybody


@dataclass(frozen=True)
class Shell:
    """A shell that leads a session of its own: its number, its birth ("" where the system did not say), its mark."""

    number: int
    birth: str
    mark: str

    @property
    def alive(self) -> bool:
        """Does it live, or a process of its group that bears its mark? Another one with its number is not meant."""
        if self.number < _FIRST:
            return False
        leads = bool(self.birth) and birth_of(self.number) == self.birth and _group_of(self.number) == self.number
        if leads:
            with suppress(ChildProcessError):
                os.waitpid(self.number, os.WNOHANG)  # our own child that has ended would stay in the table
        return (leads and _lives(self.number)) or any(self._started(number) for number in psutil.pids())

    def signal(self, number: signal.Signals) -> None:
        """Signal the shell and all of its group; nobody where it is not `alive`."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.number, number)

    def _started(self, number: int) -> bool:
        """A group keeps its number for as long as it has members: one member that is ours says that the group is."""
        if not self.mark or _group_of(number) != self.number:
            return False
        with suppress(psutil.Error, OSError):
            return psutil.Process(number).environ().get(MARK) == self.mark
        return False


@contextmanager
def begun(script: str, log: Path, environment: Mapping[str, str], mark: str) -> Iterator[Shell]:
    """A shell with a session of its own, which runs `script` when the block is left and not where it failed: what could
    not be kept in mind is not begun either. Raises ReadOnlyError."""
    read_only.check()
    with log.open("wb") as said:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", f"read go || exit; {script}"],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**environment, MARK: mark},
        )
    with cast(IO[bytes], shell.stdin) as gate:
        yield Shell(shell.pid, birth_of(shell.pid), mark)
        gate.write(b"go\n")


def birth_of(number: int) -> str:
    """What tells a process from a later one of the same number; "" where there is none, or nobody says."""
    if (_TABLE / "self" / "stat").is_file():
        return _ticks(number)
    with suppress(psutil.Error):
        return repr(psutil.Process(number).create_time())
    return ""


def _lives(number: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(number).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


def _group_of(number: int) -> int:
    with suppress(OSError):
        return os.getpgid(number)
    return 0


def _ticks(number: int) -> str:
    """The start of the machine and the tick since then at which a process began (proc(5), field 22)."""
    with suppress(OSError, IndexError):
        text = (_TABLE / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
        return f"{_boot()} {text.rpartition(')')[2].split()[19]}"  # its name stands before, with whatever it holds
    return ""


@cache
def _boot() -> str:
    """Which start of the machine this is."""
    with suppress(OSError):
        return (_TABLE / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    return ""
