"""Long work in resumable parts with time limits, for a machine that is available for minutes only.

A part is a few commands. Its state is a file in RESULTS/parts, written when it ends; its output goes to RESULTS/logs.
A call that was cut off continues where it stopped; failed parts are tried again after all others, and stop none of
them. Knows nothing of the commands' purpose.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from core_models.files.atomic_files import atomic_replace, write_atomic

STATES = ("done", "failed", "cut off", "not begun")
LEAST_SECONDS = 20.0  # no part is started with less time left
GRACE_SECONDS = 30.0  # between interrupting a command and killing it, at most a quarter of its time
LARGEST_LOG = 300_000  # bytes of a log's end that are packed


@dataclass(frozen=True)
class Part:
    """Commands that run one after the other.

    resumes: a second call continues where the first was cut off, so the part is run again at once, before all others.
    guessed_minutes: estimated time of the whole part.
    """

    name: str
    measures: str
    commands: Sequence[Sequence[str]]
    guessed_minutes: float
    resumes: bool = True
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The end of a part. seconds: of all calls together; failures: calls without progress."""

    name: str
    state: str
    seconds: float = 0.0
    failures: int = 0
    reason: str = ""


def outcome(part: Part, results: Path) -> Outcome:
    """The stored outcome of a part; "not begun" without a file or with a damaged one."""
    with suppress(OSError, ValueError, TypeError):
        stored = Outcome(**json.loads(_state_file(part, results).read_text()))
        if stored.state in STATES:
            return stored
    return Outcome(part.name, "not begun")


def run_parts(
    parts: Iterable[Part], results: Path, limit_seconds: float, seconds: float, say: Callable[[str], None]
) -> list[Outcome]:
    """Run unfinished parts, failed ones last; each for at most `limit_seconds`, all together for `seconds`."""
    parts, end = list(parts), time.monotonic() + seconds
    waiting = [part for part in parts if outcome(part, results).state != "done"]
    for part in sorted(waiting, key=lambda waiting_part: outcome(waiting_part, results).failures):
        seconds_left = min(limit_seconds, end - time.monotonic())
        if seconds_left < min(LEAST_SECONDS, limit_seconds):
            say(f"{part.name}: not begun, {max(0, end - time.monotonic()):.0f} s are left")
            continue
        say(f"{part.name}: {part.measures}; at most {seconds_left:.0f} s")
        ended = _run(part, results, seconds_left)
        say(f"{part.name}: {ended.state}{f', {ended.reason}' if ended.reason else ''}")
    return [outcome(part, results) for part in parts]


def _run(part: Part, results: Path, seconds: float) -> Outcome:
    before, began = outcome(part, results), time.monotonic()
    log = results / "logs" / f"{part.name}.log"
    for folder in (log.parent, _state_file(part, results).parent):
        folder.mkdir(parents=True, exist_ok=True)
    state, reasons = "done", []
    with log.open("ab") as out:
        for command in part.commands:
            seconds_left = seconds - (time.monotonic() - began)
            out.write(f"\n$ {' '.join(command)}\n".encode())
            out.flush()
            code = (
                _call(command, {**os.environ, **part.environment}, seconds_left, out.fileno())
                if seconds_left > 0
                else None
            )
            if code is None:
                state, reasons = "cut off", [f"after {seconds:.0f} s"]
                break
            if code:
                state = "failed"
                reasons.append(f"exit code {code}: {_last_line(log)}")
    failed = state == "failed" or (state == "cut off" and not part.resumes)
    total = before.seconds + time.monotonic() - began
    ended = Outcome(part.name, state, round(total, 1), before.failures + failed, "; ".join(reasons))
    write_atomic(_state_file(part, results), json.dumps(asdict(ended), indent=1) + "\n")
    return ended


def _last_line(log: Path) -> str:
    """The first 200 characters of the last non-empty line, which mostly is the error message."""
    with log.open("rb") as written:
        written.seek(max(0, log.stat().st_size - 4096))
        lines = written.read().decode(errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


def _call(command: Sequence[str], environment: dict[str, str], seconds: float, log: int) -> int | None:
    """Run a command and return its exit code; None if it was ended with its children because time was up.

    It is interrupted a little earlier, so that a training can save its state.
    """
    end = time.monotonic() + seconds
    try:
        # A group of its own, so that it ends with its children; no session, so that it ends with its terminal.
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
        )
    except OSError as error:
        os.write(log, f"{error}\n".encode())
        return 127
    try:
        return process.wait(seconds - min(GRACE_SECONDS, seconds / 4))
    except subprocess.TimeoutExpired:
        _end(process, end)
        return None
    except BaseException:
        _end(process, time.monotonic() + GRACE_SECONDS)
        raise


def _end(process: subprocess.Popen[bytes], until: float) -> None:
    """Interrupt a process and its group, then kill it. Its number cannot be reused before it is waited for."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < until and not _ended(process):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process that was not waited for has ended; False where the system cannot say (macOS before 3.13)."""
    return hasattr(os, "waitid") and bool(os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG))


def table(outcomes: Sequence[Outcome]) -> str:
    """One line per part: name, state, seconds, and the reason if it is not done."""
    width = max((len(outcome.name) for outcome in outcomes), default=4)
    lines = [f"{'part':{width}}  {'state':9}  {'seconds':>8}  reason"]
    lines += [
        f"{outcome.name:{width}}  {outcome.state:9}  {outcome.seconds:8.0f}  {outcome.reason}" for outcome in outcomes
    ]
    return "\n".join(line.rstrip() for line in lines)


def pack(results: Path, archive: Path, kinds: Sequence[str] = (".csv", ".json", ".log")) -> int:
    """Pack tables, states and the ends of logs into one tar.gz without runs, and return its size in bytes."""
    files = sorted(path for path in results.rglob("*") if path.suffix in kinds and path.is_file())
    with atomic_replace(archive) as unfinished, tarfile.open(unfinished, "w:gz") as packed:
        for path in files:
            name = path.relative_to(results)
            if name.parts[0] == "runs":
                continue
            member = packed.gettarinfo(path, str(name))
            with path.open("rb") as content:
                if path.suffix == ".log" and member.size > LARGEST_LOG:
                    content.seek(member.size - LARGEST_LOG)
                    member.size = LARGEST_LOG
                packed.addfile(member, content)
    return archive.stat().st_size


def _state_file(part: Part, results: Path) -> Path:
    return results / "parts" / f"{part.name}.json"
