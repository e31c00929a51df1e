"""Time and memory of the stages of a process, and starting such a process.

Knows Linux's `/proc/self`, nothing of the measured work.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.jobs import safe_path

MEGABYTE = 1e6
_PROCESS = Path("/proc/self")


class ScaleError(RuntimeError):
    """A measurement that is impossible here; the message says why."""


class Stages:
    """The stages so far, one row each.

    Columns: stage; seconds; cpu_seconds of this process and its ended children; anonymous_mb and mapped_mb, the growth
    of its own memory and of mapped file pages; peak_mb, its peak memory so far.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the block as one stage."""
        anonymous, mapped = _resident()
        cpu, began = _cpu_seconds(), time.perf_counter()
        yield
        seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
        anonymous_after, mapped_after = _resident()
        self.rows.append(
            {
                "stage": name,
                "seconds": seconds,
                "cpu_seconds": cpu,
                "anonymous_mb": (anonymous_after - anonymous) / MEGABYTE,
                "mapped_mb": (mapped_after - mapped) / MEGABYTE,
                "peak_mb": _bytes("status", "VmHWM") / MEGABYTE,
            }
        )


def measure_apart(module: str, environment: Mapping[str, str], threads: int, **arguments: Any) -> list[dict[str, Any]]:
    """The rows that `python -m module` prints as JSON, run with these arguments and number of matrix threads."""
    if not (_PROCESS / "smaps_rollup").is_file():
        raise ScaleError("this measurement reads /proc/self/smaps_rollup, which only Linux has; run it there.")
    # The libraries read these when they are loaded, so they must be set before.
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    printed = subprocess.run(
        safe_path.module(module, json.dumps(arguments)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=safe_path.environment(**limits, **environment),
    ).stdout
    return json.loads(printed)


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _resident() -> tuple[int, int]:
    """Bytes of this process's own memory and of mapped file pages."""
    anonymous = _bytes("smaps_rollup", "Anonymous")
    return anonymous, _bytes("smaps_rollup", "Rss") - anonymous


def resident_megabytes(process: int) -> float:
    """The present memory of another process with mapped files; NaN if /proc does not have it."""
    try:
        return _bytes("status", "VmRSS", Path(f"/proc/{process}")) / MEGABYTE
    except OSError:
        return float("nan")


def _bytes(file: str, entry: str, process: Path = _PROCESS) -> int:
    match = re.search(rf"^{entry}:\s+(\d+) kB$", (process / file).read_text(), re.MULTILINE)
    if match is None:
        raise ScaleError(f"{process / file} has no line {entry!r}; a newer Linux has.")
    return 1024 * int(match[1])
