"""Long work in parts on a machine that is lent for minutes: each under a time limit, none twice, and none stops others.

A part is a few commands. Its state is a file in RESULTS/parts, written when it ends, its output RESULTS/logs; so a call
that was cut off goes on where it stopped, and what failed waits until all else has been tried. Knows nothing of what
the commands do.
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
LEAST_SECONDS = 20.0  # with less than this left, no part is begun
GRACE_SECONDS = 30.0  # between asking a command to end and killing it, at most a quarter of its time
LARGEST_LOG = 300_000  # bytes of a log's end that are packed


@dataclass(frozen=True)
class Part:
    """Commands that run one after the other. resumes: a second call goes on where the first was cut off, so it is
    called again at once, not after all others; guessed_minutes: how long all of it may take."""

    name: str
    measures: str
    commands: Sequence[Sequence[str]]
    guessed_minutes: float
    resumes: bool = True
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a part ended. seconds: of all calls together; failures: calls that did not bring it on."""

    name: str
    state: str
    seconds: float = 0.0
    failures: int = 0
    reason: str = ""


def outcome(part: Part, results: Path) -> Outcome:
    """What earlier calls made of a part; one that nobody began, or whose file is damaged, is not begun."""
    with suppress(OSError, ValueError, TypeError):
        kept = Outcome(**json.loads(_state_file(part, results).read_text()))
        if kept.state in STATES:
            return kept
    return Outcome(part.name, "not begun")


def run_parts(
    parts: Iterable[Part], results: Path, limit_seconds: float, seconds: float, say: Callable[[str], None]
) -> list[Outcome]:
    """Run what is not done, the parts that failed before last; each for at most `limit_seconds`, all for `seconds`."""
    parts, end = list(parts), time.monotonic() + seconds
    waiting = [part for part in parts if outcome(part, results).state != "done"]
    for part in sorted(waiting, key=lambda one: outcome(one, results).failures):
        left = min(limit_seconds, end - time.monotonic())
        if left < min(LEAST_SECONDS, limit_seconds):
            say(f"{part.name}: not begun, {max(0, end - time.monotonic()):.0f} s are left")
            continue
        say(f"{part.name}: {part.measures}; at most {left:.0f} s")
        ended = _run(part, results, left)
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
            left = seconds - (time.monotonic() - began)
            out.write(f"\n$ {' '.join(command)}\n".encode())
            out.flush()
            code = _call(command, {**os.environ, **part.environment}, left, out.fileno()) if left > 0 else None
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
    """The last line that is not empty, which mostly says what went wrong; its first 200 signs."""
    with log.open("rb") as written:
        written.seek(max(0, log.stat().st_size - 4096))
        lines = written.read().decode(errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


def _call(command: Sequence[str], environment: dict[str, str], seconds: float, log: int) -> int | None:
    """A command's exit code; None where it had to be ended, with all that it had started, because time was up.

    It is asked to end a little before that, so that a training can save where it is.
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
    """End a process and its group: asked first, then killed. Until it is waited for, its number is nobody else's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < until and not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def table(outcomes: Sequence[Outcome]) -> str:
    """A line a part: its name, state, seconds, and why it is not done."""
    width = max((len(one.name) for one in outcomes), default=4)
    lines = [f"{'part':{width}}  {'state':9}  {'seconds':>8}  reason"]
    lines += [f"{one.name:{width}}  {one.state:9}  {one.seconds:8.0f}  {one.reason}" for one in outcomes]
    return "\n".join(line.rstrip() for line in lines)


def pack(results: Path, archive: Path, kinds: Sequence[str] = (".csv", ".json", ".log")) -> int:
    """Tables, states and the ends of logs as one tar.gz, without the runs in it; how many bytes that is."""
    files = sorted(path for path in results.rglob("*") if path.suffix in kinds and path.is_file())
    with atomic_replace(archive) as unfinished, tarfile.open(unfinished, "w:gz") as packed:
        for path in files:
            name = path.relative_to(results)
            if name.parts[0] == "runs":
                continue
            found = packed.gettarinfo(path, str(name))
            with path.open("rb") as content:
                if path.suffix == ".log" and found.size > LARGEST_LOG:
                    content.seek(found.size - LARGEST_LOG)
                    found.size = LARGEST_LOG
                packed.addfile(found, content)
    return archive.stat().st_size


def _state_file(part: Part, results: Path) -> Path:
    return results / "parts" / f"{part.name}.json"
