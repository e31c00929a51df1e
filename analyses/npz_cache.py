"""Arrays kept in an .npz file that appears whole or not at all, also where two processes write it at the same moment.

What is kept here can always be computed again, so a damaged file is as good as none. Knows no meaning of the arrays.
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

MOST_BYTES = 1 << 33  # that all arrays of a file may take when they are unpacked
# What NumPy and zipfile raise for a file that is none of their own; RuntimeError: one that says it is encrypted, or
# packed by a method that is not known; the next three: a header that is no Python literal, or promises the impossible.
DAMAGED = (
    *(ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, TypeError, tokenize.TokenError, MemoryError, OverflowError, struct.error),
)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write the arrays by their names, compressed; the folder is made where there is none. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.name}.part-"
    for abandoned in path.parent.glob(f"{glob.escape(start)}*"):
        _remove_if_abandoned(abandoned)
    unfinished, file = _begun(path, start)
    try:
        with file:
            np.savez_compressed(file, **arrays)
            if sys.platform == "win32":  # which moves no opened file, and where nothing is locked
                file.close()
            os.replace(unfinished, path)
    except OSError as error:  # NumPy says neither of which file, nor always why
        raise OSError(error.errno or errno.ENOSPC, error.strerror or os.strerror(errno.ENOSPC), str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _begun(path: Path, start: str) -> tuple[Path, IO[bytes]]:
    """The new file beside `path`, and as what it is open and locked."""
    while True:
        unfinished = path.with_name(f"{start}{secrets.token_hex(8)}")
        file = unfinished.open("xb")  # with the permissions of any new file
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:  # else somebody took it for abandoned before it was locked
            return unfinished, file
        file.close()


def _remove_if_abandoned(unfinished: Path) -> None:
    """Remove what a process that was killed left: nobody has it locked."""
    with suppress(OSError), unfinished.open("r+b") as file:
        if _lock(file):
            unfinished.unlink(missing_ok=True)


def _lock(file: BinaryIO) -> bool:
    """Is a file ours alone, until it is closed? No where nothing can be locked."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays by their names; None where there is no file, or none that can be read. Nothing is ever unpickled."""
    try:
        with open_arrays(path) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, *DAMAGED):
        return None


def checked_numbers(
    arrays: Mapping[str, Any], axes: Mapping[str, str], may_be_nan: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """The arrays of `axes`, held to them: a letter an axis, the same letter the same length, as {"entropy": "SIL"}.

    Raises KeyError for one that is missing, ValueError for one of other axes or that holds anything but finite numbers.
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
    """The arrays of a file, each unpacked when it is asked for. Raises OSError for what is no regular file, a device or
    a named pipe, and one of DAMAGED where it holds other things or more than MOST_BYTES."""
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
