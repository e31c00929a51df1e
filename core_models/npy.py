"""NumPy's array files, read as data that may have been cut or swapped for something else.

Knows the file format's failures, not what an array means.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def read_array(path: Path) -> np.ndarray:
    """The array of a `.npy` file; ValueError for anything else, a pickle too."""
    with _refused(path):
        return np.load(path, allow_pickle=False)


def map_array(path: Path) -> np.memmap:
    """The same, mapped into memory instead of read."""
    with _refused(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the header is a Python literal: it fails as syntax, tokens, types, sizes or memory
        raise ValueError(f"{path}: missing, cut short or no array ({str(error)[:300]})") from None
