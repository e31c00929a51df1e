"""Atomic writing of files, also by several processes at once.

A file is written under a temporary name, `.NAME.part-*`, locked by its writer, and renamed when it is complete.
Temporary files left by killed processes are removed when the file is written again.
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
_LONGEST = 100  # characters of the name in the temporary name: file systems allow about 255 bytes


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to `path` that replaces it on success and is removed on failure.

    If `path` is a link, the link is replaced and its target is unchanged: a link in somebody else's run may point to
    any file of ours. Raises OSError for system files such as /dev/stdout.
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
        if opened is not None:  # last, since an unlocked file looks abandoned
            os.close(opened)


def _check_place(path: Path) -> None:
    folder = os.path.realpath(path.parent)
    if any(folder == root or folder.startswith(f"{root}/") for root in _OF_THE_SYSTEM):
        raise OSError(errno.EINVAL, "a device of the system, whose place no file can take", str(path))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Convert disk errors that name no file, or the temporary file, to an OSError that names `path`."""
    try:
        yield
    except OSError as error:
        # NumPy's error has the number of bytes not written, and no reason.
        number = errno.ENOSPC if error.errno is None and " requested and " in str(error) else error.errno
        if number is None or not (_is_unfinished(error.filename) or (error.filename is None and number in _OF_DISKS)):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _is_unfinished(path: object) -> bool:
    parts = Path(path).parts if isinstance(path, str | os.PathLike) else ()
    return any(part.startswith(".") and ".part-" in part for part in parts)


def _begun(path: Path) -> tuple[Path, int | None]:
    """Create the temporary file; returns its path and the locked file descriptor."""
    while True:
        unfinished = path.with_name(f"{_start(path)}{secrets.token_hex(8)}")
        # With default permissions. Reading the process's umask would change it for other threads.
        opened = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if sys.platform == "win32":  # cannot move an open file; nothing is locked there
            os.close(opened)
            return unfinished, None
        _lock(opened, wait=True)
        if os.fstat(opened).st_nlink:  # 0: another process removed it before it was locked
            return unfinished, opened
        os.close(opened)


def _remove_abandoned(path: Path) -> None:
    """Remove unlocked temporary files of `path`, left by killed processes."""
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


def _lock(opened: int, wait: bool = False) -> bool:
    """Lock a file until it is closed or the process ends.

    Returns False if another process has it, unless we wait for it, or if locking is impossible.
    """
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return False
    return True


def write_atomic(path: Path, content: str | bytes) -> Path:
    """Write a file atomically, text as UTF-8."""
    with atomic_replace(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
