"""Files that appear whole or not at all, also where two processes write one at the same moment. Knows no format.

A file is written under another name, `.NAME.part-*`, locked by who writes it, and takes its own when it is whole.
What a process that was killed left of that kind goes when the file is written again.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
_OF_THE_SYSTEM = ("/dev", "/proc", "/sys")
_LONGEST = 100  # characters of the name that the other name begins with: file systems take some 255 bytes


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place when all went well, and vanishes when not.

    Where `path` is a link, the link is replaced and what it points to stays: a link in somebody else's run may point to
    any file of ours. Raises OSError for a place that the system keeps, such as /dev/stdout.
    """
    _check_place(path)
    _remove_abandoned(path)
    unfinished, opened = _begun(path)
    try:
        with named(path):
            yield unfinished
            os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
        if opened is not None:  # not before: whoever could lock it would take it for abandoned
            os.close(opened)


def _check_place(path: Path) -> None:
    place = os.path.realpath(path.parent)
    if any(place == root or place.startswith(f"{root}/") for root in _OF_THE_SYSTEM):
        raise OSError(errno.EINVAL, "a device of the system, whose place no file can take", str(path))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """What the disk says against writing `path`, of no file or of the one that is written instead, leaves as an
    OSError that names `path`."""
    try:
        yield
    except OSError as error:
        # NumPy says how many bytes it could not write, and not why.
        number = errno.ENOSPC if error.errno is None and " requested and " in str(error) else error.errno
        if number is None or not (_is_unfinished(error.filename) or (error.filename is None and number in _OF_DISKS)):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _is_unfinished(path: object) -> bool:
    parts = Path(path).parts if isinstance(path, str | os.PathLike) else ()
    return any(part.startswith(".") and ".part-" in part for part in parts)


def _begun(path: Path) -> tuple[Path, int | None]:
    """The new file, and as what it is open as long as it is locked."""
    while True:
        unfinished = path.with_name(f"{_start(path)}{secrets.token_hex(8)}")
        # With the permissions of any new file. Asking for the mask of a process changes it for its other threads too.
        opened = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if sys.platform == "win32":  # which moves no opened file, and where nothing is locked
            os.close(opened)
            return unfinished, None
        _lock(opened)
        if os.fstat(opened).st_nlink:  # else somebody took it for abandoned before it was locked
            return unfinished, opened
        os.close(opened)


def _remove_abandoned(path: Path) -> None:
    """Remove what killed processes left beside `path`: nobody has it locked."""
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if name.startswith(_start(path)):
                _remove_if_unlocked(path.with_name(name))


def _remove_if_unlocked(unfinished: Path) -> None:
    with suppress(OSError):
        opened = os.open(unfinished, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _lock(opened):
                unfinished.unlink(missing_ok=True)
        finally:
            os.close(opened)


def _start(path: Path) -> str:
    return f".{path.name[:_LONGEST]}.part-"


def _lock(opened: int) -> bool:
    """Is the file ours alone? It stays so until it is closed, or the process ends. No where nothing can be locked."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return False
    return True


def write_atomic(path: Path, content: str | bytes) -> Path:
    """Write a file, a text as UTF-8."""
    with atomic_replace(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
