"""Arrays kept in an .npz file that appears whole or not at all, also where two processes write it at the same moment.

What is kept here can always be computed again, so a damaged file is as good as none. Knows no meaning of the arrays.
"""

from __future__ import annotations

import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

# What NumPy and zipfile raise for a file that is none of their own; RuntimeError: one that says it is encrypted, or
# packed by a method that is not known.
DAMAGED = (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


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
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, TypeError, *DAMAGED):  # TypeError: a lone array, which has no names
        return None
