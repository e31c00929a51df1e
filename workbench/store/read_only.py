"""Read-only mode of the app: no jobs, no uploads, nothing written to the runs.

Code that starts or keeps something calls `check`. In addition, an audit hook of the interpreter refuses every write
below the runs folder, like a file system mounted read-only. Results that cannot be kept are computed again.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

READ_ONLY = "WORKBENCH_READ_ONLY"  # in the environment: "1" says so
WHY = "This workbench was started with --read-only: it starts no jobs and keeps no uploads, ratings or figures."
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Which arguments of an event of the interpreter are paths that it changes.
_CHANGED = dict.fromkeys(
    ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime", "shutil.rmtree"), (0,)
) | {"os.rename": (0, 1), "shutil.move": (0, 1), "os.link": (1,), "os.symlink": (1,), "shutil.copyfile": (1,)}
_protected: set[str] = set()


class ReadOnlyError(ValueError):
    """Raised where something would be changed in read-only mode."""


def active() -> bool:
    """Return True in read-only mode."""
    return os.environ.get(READ_ONLY, "") not in ("", "0")


def check() -> None:
    """Raise ReadOnlyError in read-only mode."""
    if active():
        raise ReadOnlyError(WHY)


def protect(root: Path) -> None:
    """Refuse this process's writes below a folder from now on, while `active`, with an OSError like a disk's."""
    if not _protected:
        sys.addaudithook(_refuse)
    _protected.add(os.path.realpath(root))


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        paths = [path] if isinstance(flags, int) and flags & _WRITING else []
    else:
        paths = [arguments[position] for position in _CHANGED.get(event, ())]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike) and active() and _is_inside(os.fsdecode(path)):
            raise OSError(errno.EROFS, "the workbench was started with --read-only", os.fsdecode(path))


def _is_inside(path: str) -> bool:
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in _protected)
