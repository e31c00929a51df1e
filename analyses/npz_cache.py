"""Arrays cached in .npz files, written atomically, also if two processes write the same file at once.

Cached arrays can always be computed again, so a damaged file is treated as a missing one.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import stat
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

if sys.platform != "win32":
    import fcntl

MOST_BYTES = 1 << 33  # limit for all unpacked arrays of a file
# What NumPy and zipfile raise for a file in another format. RuntimeError: encrypted, or an unknown compression method;
# the second row: a header that is no Python literal, or has impossible sizes.
DAMAGED = (
    *(ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, TypeError, tokenize.TokenError, MemoryError, OverflowError, struct.error),
)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write the named arrays, compressed, and create the folder if needed. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.name}.part-"
    for abandoned in path.parent.glob(f"{glob.escape(start)}*"):
        _remove_if_abandoned(abandoned)
    unfinished, file = _begun(path, start)
    try:
        with file:
            np.savez_compressed(file, **arrays)
            if sys.platform == "win32":  # cannot move an open file; nothing is locked there
                file.close()
            os.replace(unfinished, path)
    except OSError as error:  # NumPy's error names no file and sometimes no reason
        raise OSError(error.errno or errno.ENOSPC, error.strerror or os.strerror(errno.ENOSPC), str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _begun(path: Path, start: str) -> tuple[Path, IO[bytes]]:
    """Create a temporary file next to `path`, open and locked."""
    while True:
        unfinished = path.with_name(f"{start}{secrets.token_hex(8)}")
        file = unfinished.open("xb")  # with the permissions of any new file
        _lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:  # 0: another process removed it before it was locked
            return unfinished, file
        file.close()


def _remove_if_abandoned(unfinished: Path) -> None:
    """Remove an unlocked temporary file, left by a killed process."""
    with suppress(OSError), unfinished.open("r+b") as file:
        if _lock(file):
            unfinished.unlink(missing_ok=True)


def _lock(file: BinaryIO, wait: bool = False) -> bool:
    """Lock a file until it is closed; False if another process has it, unless we wait, or the platform cannot lock."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays by name; None if the file is missing or unreadable. Nothing is ever unpickled."""
    try:
        with open_arrays(path) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, *DAMAGED):
        return None


def checked_numbers(
    arrays: Mapping[str, Any], axes: Mapping[str, str], may_be_nan: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """The arrays named in `axes`, checked against their axes, e.g. {"entropy": "SIL"}: equal letters, equal lengths.

    Raises KeyError for a missing array, ValueError for other axes and for anything but finite numbers.
    """
    lengths: dict[str, int] = {}
    for name, letters in axes.items():
        array = arrays[name]
        if array.dtype.kind not in "fiu":
            raise ValueError(f"{name}: {array.dtype} instead of numbers")
        for letter, length in zip(letters, array.shape, strict=True):
            if lengths.setdefault(letter, length) != length:
                raise ValueError(f"{name}: axis {letter} of length {length} instead of {lengths[letter]}")
        if name not in may_be_nan and not np.isfinite(array).all():
            raise ValueError(f"{name}: not all are finite")
    return {name: arrays[name] for name in axes}


@contextmanager
def open_arrays(path: Path | str) -> Iterator[np.lib.npyio.NpzFile]:
    """Open the arrays of a file; each is unpacked on access.

    Raises OSError for anything but a regular file (a device, a named pipe), and one of DAMAGED for other content or
    more than MOST_BYTES.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a file", os.fspath(path))
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"its arrays take {size} bytes")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            yield stored
