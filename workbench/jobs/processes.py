"""Detached shells: starting them, and testing whether they or their children are alive.

The number of a process is not enough, since numbers are reused: a shell is identified by its birth, its children by a
mark in the environment. Other processes are never signalled. Knows processes, no job.
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

MARK = "WORKBENCH_JOB"  # environment variable of a shell and its children
_TABLE = Path("/proc")  # on Linux, where births count from the boot and no clock can move them
_FIRST = 2  # 0 and 1 belong to the system; as groups they mean our own group and, negated, all processes


@dataclass(frozen=True)
class Shell:
    """A shell that leads its own session: process number, birth ("" if unknown), mark."""

    number: int
    birth: str
    mark: str

    @property
    def alive(self) -> bool:
        """Return True if it, or a process of its group with its mark, is alive; not another process of its number."""
        if self.number < _FIRST:
            return False
        leads = bool(self.birth) and birth_of(self.number) == self.birth and _group_of(self.number) == self.number
        if leads:
            with suppress(ChildProcessError):
                os.waitpid(self.number, os.WNOHANG)  # remove an ended child from the process table
        return (leads and _lives(self.number)) or any(self._started(number) for number in psutil.pids())

    def signal(self, number: signal.Signals) -> None:
        """Signal the shell and its group; no process if it is not `alive`."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.number, number)

    def _started(self, number: int) -> bool:
        """Return True if a member of the group is ours: a group keeps its number while it has members."""
        if not self.mark or _group_of(number) != self.number:
            return False
        with suppress(psutil.Error, OSError):
            return psutil.Process(number).environ().get(MARK) == self.mark
        return False


@contextmanager
def begun(script: str, log: Path, environment: Mapping[str, str], mark: str) -> Iterator[Shell]:
    """Yield a shell with its own session, which runs `script` after the block, unless the block failed.

    So a script whose record could not be written is never started. Raises ReadOnlyError.
    """
    read_only.check()
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", f"read go || exit; {script}"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**environment, MARK: mark},
        )
    with cast(IO[bytes], shell.stdin) as gate:
        yield Shell(shell.pid, birth_of(shell.pid), mark)
        gate.write(b"go\n")


def birth_of(number: int) -> str:
    """An identification of a process's start, different for a later process of this number; "" if unknown."""
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
    """The boot id and the start of a process in ticks since boot (proc(5), field 22)."""
    with suppress(OSError, IndexError):
        text = (_TABLE / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
        return f"{_boot()} {text.rpartition(')')[2].split()[19]}"  # after the process name, which may contain anything
    return ""


@cache
def _boot() -> str:
    """The boot id of the machine."""
    with suppress(OSError):
        return (_TABLE / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    return ""
