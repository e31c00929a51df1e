"""Digests of files, computed again only where a file has changed. Knows no runs and no file format.

A stamp needs no reading; a copied file has another one, and the same digest.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from core_models.files.run_files import TENSORS, open_file


def stamp_of(path: Path) -> list[int]:
    """Size in bytes and time in nanoseconds: as long as they stay, so does what is in the file."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def digest_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises OSError where it cannot be read."""
    state = path.stat()
    return _digest(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with open_file(path, TENSORS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
