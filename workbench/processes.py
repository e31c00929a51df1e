"""Shells that are started for good, and whether one is still there, or something that it started: its number alone does
not say, since numbers are given away again. Knows the system's table of processes, no job.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple, cast

_TABLE = Path("/proc")  # of Linux; other systems do not say when a process began


class _Process(NamedTuple):
    """What the system says of a process; `birth` is one of a kind, also across restarts of the machine."""

    living: bool
    group: int
    birth: str


@contextmanager
def begun(script: str, log: Path, environment: Mapping[str, str]) -> Iterator[int]:
    """The number of a shell with a session of its own, which runs `script` when the block is left and not where it
    failed: what could not be kept in mind is not begun either."""
    with log.open("wb") as said:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", f"read go || exit; {script}"],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
        )
    with cast(IO[bytes], shell.stdin) as gate:
        yield shell.pid
        gate.write(b"go\n")


def birth_of(process: int) -> str:
    """What tells a process from a later one of the same number; "" where the system does not say."""
    found = _looked_up(process)
    return found.birth if found else ""


def alive(process: int, birth: str) -> bool:
    """Does the process live, or one of its group? Another one that got its number since is not meant."""
    with suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)  # our own child that has ended would stay in the table
    if not (_TABLE / "self" / "stat").is_file():
        return _answers(process)
    found = _looked_up(process)
    if found is not None and found.living:
        return birth in ("", found.birth)
    numbers = (int(path.name) for path in _TABLE.glob("[0-9]*"))
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
        text = (_TABLE / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        state, _, group, *rest = text.rpartition(")")[2].split()  # its name stands before, with whatever it holds
        return _Process(state not in "ZX", int(group), f"{_boot()} {rest[16]}")
    except (OSError, ValueError, IndexError):
        return None


@cache
def _boot() -> str:
    """Which start of the machine this is: times of birth count from it."""
    try:
        return (_TABLE / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""
