"""Commands that a page may start, made to run until a test lets them go.

The Python of a job waits before its command begins where a pipe is named after its last word; there is no such
thing outside the tests, which bring their own `sitecustomize`.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.jobs import processes, queue, state_folder

GONE = 2**22 + 1  # above the largest process number of Linux
_WAITING = """
import os, sys
try:
    open(sys.orig_argv[-1] + ".held").close()
except OSError:
    pass
"""


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runs folder below `folder`, an empty folder of state, and Pythons that wait."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(_WAITING)
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    monkeypatch.setenv(state_folder.HOME, str(folder / "state"))
    root = folder / "runs"
    root.mkdir()
    return root


def held(root: Path, name: str) -> tuple[str, ...]:
    """The arguments of a command that runs until `let_go`, and then fails: there is no run of this name."""
    os.mkfifo(root / f"{name}.held")
    return ("resume", str(root / name))


def let_go(root: Path, name: str) -> None:
    pipe = root / f"{name}.held"
    pipe.open("wb").close()
    pipe.unlink()


def lay_down(root: Path, name: str, shell: processes.Shell | None = None, **about: object) -> Path:
    """A job as it is kept, which failed unless told otherwise: its folder."""
    folder = state_folder.make(queue.queue_of(root)) / name
    folder.mkdir()
    job = {"root": str(root.resolve()), "title": name, "arguments": ["resume", str(root / name)],
           "process": shell.number if shell else GONE, "birth": shell.birth if shell else "long ago",
           "started": 1.0, "asked": 1.0}  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job | about))
    return folder


@contextlib.contextmanager
def asleep(folder: Path, mark: str = "") -> Iterator[processes.Shell]:
    """A shell that was begun as those of jobs are, and sleeps."""
    with processes.begun("sleep 600; :", folder / "asleep.txt", os.environ, mark) as shell:
        pass
    assert shell.alive, (folder / "asleep.txt").read_text()
    yield shell
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.number, 9)
