"""Measurement of engines in rounds, each in a process of its own, one after the other.

A machine's speed drifts by more than engines differ, so each round measures all of them within minutes;
`analyses.efficiency` combines the rounds.
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
from workbench.benchmark.workload import Conditions
from workbench.jobs import safe_path
from workbench.store.runs import RunError


@dataclass(frozen=True)
class Engine:
    """An engine: its measurement for a sentence length or the mix of lengths (None), and the estimated time."""

    name: str
    measure: Callable[[int | None], Record]
    guessed_seconds: float


@dataclass(frozen=True)
class Step:
    """A new or stored measurement; `seconds_left` is the estimate for the remaining ones."""

    key: Key
    record: Record
    seconds: float
    kept: bool
    number: int
    of: int
    seconds_left: float


def ours(system: str, steps: int, conditions: Conditions, guessed_seconds: float) -> Engine:
    """A system of the catalogue as an engine, measured in a process of its own because of peak memory.

    steps: the number of timed training steps.
    """
    precision, threads = conditions.precision, conditions.threads
    options = ["--json", "--precision", precision, "--device", conditions.device]
    options += ["--threads", str(threads), "--steps", str(steps)]
    options += ["--compile-routing"] if conditions.compile_routing else []
    options += ["--decoding-only"] if conditions.decoding_only else []
    marks = [*([] if precision == "float32" else [precision]), *(["compiled"] if conditions.compile_routing else [])]
    name = " ".join([system, *marks])

    def measure(length: int | None) -> Record:
        lengths = [] if length is None else ["--lengths", str(length)]
        command = safe_path.module("workbench.cli", "benchmark", "speed", system, *options, *lengths)
        return {"engine": name, **_spoken(command, threads)}

    return Engine(name, measure, guessed_seconds)


def others(python: str, preset: str, conditions: Conditions, guessed_seconds: float) -> list[Engine]:
    """The other engines, measured with an interpreter that has transformers and ctranslate2, else RunError.

    Each has precisions of its own: those of the conditions do not count.
    """
    _check_peers(python)
    threads, device = conditions.threads, conditions.device

    def engine(name: str, works: Sequence[str]) -> Engine:
        def measure(length: int | None) -> Record:
            record: Record = {"engine": name}
            for work in works:
                record |= _spoken([python, other_toolkits.__file__, name, work, str(threads), device, preset], threads)
            return record

        return Engine(name, measure, guessed_seconds)

    asked = {"decode"} if conditions.decoding_only else {"train", "decode"}
    return [
        engine(name, [work for work in works if work in asked])
        for name, works in other_toolkits.ENGINES.items()
        if asked.intersection(works)
    ]


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
    """All measurements in order: by length, then by round, the baseline first."""
    return [
        (Key(length, number, engine.name), engine)
        for length in lengths
        for number in range(1, rounds + 1)
        for engine in engines
    ]


def measured(planned: Sequence[tuple[Key, Engine]], measurements: Measurements) -> Iterator[Step]:
    """Make the missing measurements and yield all; each is stored before it is yielded."""
    for number, (key, engine) in enumerate(planned, start=1):
        kept = stored = measurements.get(key)
        if kept is None:
            began = time.perf_counter()
            record = engine.measure(key.length)
            kept = measurements.add(key, record, time.perf_counter() - began)
        remaining = seconds_left(planned, measurements)
        yield Step(key, kept.record, kept.seconds, stored is not None, number, len(planned), remaining)


def seconds_left(planned: Sequence[tuple[Key, Engine]], measurements: Measurements) -> float:
    """Estimated seconds of the missing measurements.

    A measurement takes as long as the same one in another round; else its estimate is scaled by the ratio of measured
    to estimated times so far.
    """
    took = {(key.length, key.engine): kept.seconds for key, _ in planned if (kept := measurements.get(key))}
    guessed = {(key.length, key.engine): engine.guessed_seconds for key, engine in planned}
    factor = sum(took.values()) / sum(guessed[work] for work in took) if took else 1.0
    missing = [(key.length, key.engine) for key, _ in planned if measurements.get(key) is None]
    return sum(took.get(work, factor * guessed[work]) for work in missing)


def rounds_so_far(
    planned: Sequence[tuple[Key, Engine]], measurements: Measurements, length: int | None
) -> list[list[Record]]:
    """The complete rounds of a length; without any, the incomplete first round."""
    rounds: dict[int, list[Record]] = {}
    partial = set()
    for key, _ in planned:
        if key.length == length:
            if kept := measurements.get(key):
                rounds.setdefault(key.round, []).append(kept.record)
            else:
                partial.add(key.round)
    return [records for number, records in rounds.items() if number not in partial] or list(rounds.values())[:1]
