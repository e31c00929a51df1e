"""Engines measured in rounds, each in a process of its own, one after the other.

A machine's speed drifts by more than engines differ, so each round measures all of them within minutes; what the
rounds say together is `analyses.efficiency`'s business.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.benchmark import other_toolkits
from workbench.benchmark.measurements import Key, Measurements, Record
from workbench.jobs import safe_path
from workbench.store.runs import RunError


@dataclass(frozen=True)
class Engine:
    """What is measured, of sentences of a length or of the mix of lengths (None), and about how long that takes."""

    name: str
    measure: Callable[[int | None], Record]
    guessed_seconds: float


@dataclass(frozen=True)
class Step:
    """A measurement that was just made or had been kept; `seconds_left` is for those that are still to be made."""

    key: Key
    record: Record
    seconds: float
    kept: bool
    number: int
    of: int
    seconds_left: float


def ours(system: str, precision: str, device: str, threads: int, steps: int, guessed_seconds: float) -> Engine:
    """A system of the catalogue, measured in a process of its own, so that its peak memory is its own."""
    name = system if precision == "float32" else f"{system} {precision}"
    options = ["--json", "--precision", precision, "--device", device, "--threads", str(threads), "--steps", str(steps)]

    def measure(length: int | None) -> Record:
        lengths = [] if length is None else ["--lengths", str(length)]
        command = safe_path.module("workbench.cli", "benchmark", "speed", system, *options, *lengths)
        return {"engine": name, **_spoken(command, threads)}

    return Engine(name, measure, guessed_seconds)


def others(python: str, threads: int, device: str, preset: str, guessed_seconds: float) -> list[Engine]:
    """The other engines, measured with an interpreter that has transformers and ctranslate2; RunError where it has
    not."""
    _check_peers(python)

    def engine(name: str, works: Sequence[str]) -> Engine:
        def measure(length: int | None) -> Record:
            record: Record = {"engine": name}
            for work in works:
                record |= _spoken([python, other_toolkits.__file__, name, work, str(threads), device, preset], threads)
            return record

        return Engine(name, measure, guessed_seconds)

    return [engine(name, works) for name, works in other_toolkits.ENGINES.items()]


def _check_peers(python: str) -> None:
    # Without the current folder, which Python puts first for -c.
    look = "import sys; sys.path[:] = filter(None, sys.path); from importlib.util import find_spec; "
    look += "print(*[one for one in sys.argv[1:] if find_spec(one) is None])"
    try:
        done = subprocess.run([python, "-c", look, *other_toolkits.NEEDED], capture_output=True, text=True)
    except OSError as error:
        raise RunError(f"--peers {python}: cannot be started ({error.strerror}); name a Python") from None
    if done.returncode:
        raise RunError(f"--peers {python}: is no Python that runs ({_last_line(done.stderr)}); name another")
    if missing := done.stdout.split():
        raise RunError(f"--peers {python}: has no {' and no '.join(missing)}; install it there: pip install "
                       + " ".join(missing))  # fmt: skip


def _spoken(command: Sequence[str], threads: int) -> Record:
    environment = safe_path.environment(**({"OMP_NUM_THREADS": str(threads)} if threads else {}))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RunError(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {_last_line(done.stderr)}")
    return json.loads(done.stdout.strip().split("\n")[-1])


def _last_line(text: str) -> str:
    return text.strip().split("\n")[-1]


def plan(lengths: Sequence[int | None], rounds: int, engines: Sequence[Engine]) -> list[tuple[Key, Engine]]:
    """All measurements, in their order: length by length, in each round by round, the baseline first."""
    return [
        (Key(length, number, engine.name), engine)
        for length in lengths
        for number in range(1, rounds + 1)
        for engine in engines
    ]


def measured(planned: Sequence[tuple[Key, Engine]], found: Measurements) -> Iterator[Step]:
    """Make those of the measurements that are not kept yet; each is kept before it is handed out."""
    for number, (key, engine) in enumerate(planned, start=1):
        kept = before = found.get(key)
        if kept is None:
            began = time.perf_counter()
            record = engine.measure(key.length)
            kept = found.add(key, record, time.perf_counter() - began)
        left = seconds_left(planned, found)
        yield Step(key, kept.record, kept.seconds, before is not None, number, len(planned), left)


def seconds_left(planned: Sequence[tuple[Key, Engine]], found: Measurements) -> float:
    """How long the measurements that are not kept will take: as long as the same took in another round; else as
    guessed, times what those that were made took for each second that was guessed."""
    took = {(key.length, key.engine): kept.seconds for key, _ in planned if (kept := found.get(key))}
    guessed = {(key.length, key.engine): engine.guessed_seconds for key, engine in planned}
    factor = sum(took.values()) / sum(guessed[one] for one in took) if took else 1.0
    missing = [(key.length, key.engine) for key, _ in planned if found.get(key) is None]
    return sum(took.get(one, factor * guessed[one]) for one in missing)


def rounds_so_far(planned: Sequence[tuple[Key, Engine]], found: Measurements, length: int | None) -> list[list[Record]]:
    """The rounds of a length that are whole, or, before the first one is, what there is of it."""
    rounds: dict[int, list[Record]] = {}
    partial = set()
    for key, _ in planned:
        if key.length == length:
            if kept := found.get(key):
                rounds.setdefault(key.round, []).append(kept.record)
            else:
                partial.add(key.round)
    return [one for number, one in rounds.items() if number not in partial] or list(rounds.values())[:1]
