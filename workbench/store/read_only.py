"""An app that shows and changes nothing: no job is started, no file of a reader taken in, nothing written to the runs.

Who starts or keeps something asks `check`; beneath that, a hook of the interpreter refuses every write below the runs
folder, as a file system does that is mounted for reading only. What can be computed again is then computed again.
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
    """Something that would change what is shown."""


def active() -> bool:
    """Is nothing to be changed?"""
    return os.environ.get(READ_ONLY, "") not in ("", "0")


def check() -> None:
    """Raises ReadOnlyError where nothing is to be changed."""
    if active():
        raise ReadOnlyError(WHY)


def protect(root: Path) -> None:
    """Refuse, from now on and while `active`, what this process would write below a folder: OSError, as of a disk."""
    if not _protected:
        sys.addaudithook(_refuse)
    _protected.add(os.path.realpath(root))


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        paths = [path] if isinstance(flags, int) and flags & _WRITING else []
    else:
        paths = [arguments[place] for place in _CHANGED.get(event, ())]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike) and active() and _is_inside(os.fsdecode(path)):
            raise OSError(errno.EROFS, "the workbench was started with --read-only", os.fsdecode(path))


def _is_inside(path: str) -> bool:
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in _protected)
