"""Digests of files, computed again only where a file has changed. Knows no runs and no file format.

A stamp is cheap: the file is not read. A copy of a file has another stamp and the same digest.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from core_models.files.run_files import TENSORS, open_file


def stamp_of(path: Path) -> list[int]:
    """Size in bytes and modification time in nanoseconds; while both stay, the content counts as unchanged."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def digest_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises OSError where it cannot be read."""
    state = path.stat()
    return _digest(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with open_file(path, TENSORS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
