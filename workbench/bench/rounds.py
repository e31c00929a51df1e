"""Engines measured in rounds, each in a process of its own, one after the other.

A machine's speed drifts by more than engines differ, so each round measures all of them within minutes; what the
rounds say together is `analyses.efficiency`'s business.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench import safe_path
from workbench.bench import peers
from workbench.runs import RunError

Record = dict[str, Any]


def measure_apart(
    system: str, precision: str, device: str, threads: int, steps: int, length: int | None = None
) -> list[Record]:
    """Measure a system of the catalogue in a process of its own, so that its peak memory is its own: one record."""
    options = ["--json", "--precision", precision, "--device", device, "--threads", str(threads), "--steps", str(steps)]
    options += [] if length is None else ["--lengths", str(length)]
    record = _spoken(safe_path.module("workbench.cli", "bench", system, *options), threads)
    return [{"engine": system if precision == "float32" else f"{system} {precision}", **record}]


def measure_peers(python: str, threads: int, device: str, preset: str) -> list[Record]:
    """Measure every other engine with an interpreter that has transformers and ctranslate2."""
    found = []
    for engine, works in peers.ENGINES.items():
        record: Record = {"engine": engine}
        for work in works:
            record |= _spoken([python, peers.__file__, engine, work, str(threads), device, preset], threads)
        found.append(record)
    return found


def _spoken(command: Sequence[str], threads: int) -> Record:
    environment = safe_path.environment(**({"OMP_NUM_THREADS": str(threads)} if threads else {}))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        reason = done.stderr.strip().split("\n")[-1]
        raise RunError(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {reason}")
    return json.loads(done.stdout.strip().split("\n")[-1])


def in_rounds(measure: Sequence[Callable[[], list[Record]]], rounds: int) -> list[list[Record]]:
    """All engines, `rounds` times: a list of records for each round, the baseline first."""
    return [[record for one in measure for record in one()] for _ in range(rounds)]
