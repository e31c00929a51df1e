"""Arrays kept in an .npz file that appears whole or not at all, also where two processes write it at the same moment.

What is kept here can always be computed again, so a damaged file is as good as none. Knows no meaning of the arrays.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with unfinished.open("xb") as file:  # with the permissions of any new file
            np.savez_compressed(file, **arrays)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays by their names; None where there is no file, or none that can be read. Nothing is ever unpickled."""
    try:
        with open_arrays(path) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, *DAMAGED):
        return None


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
