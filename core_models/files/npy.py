"""NumPy's array files, mapped as data that may have been cut or swapped for something else.

Knows the file format's failures, not what an array means.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from core_models.files.run_files import ARRAY, check


def map_array(path: Path) -> np.memmap:
    """The array of a `.npy` file, mapped into memory: a header that promises more than the file holds costs nothing.
    Raises ValueError for anything else, a pickle too."""
    with _refused(path):
        check(path, ARRAY)
        return np.load(path, mmap_mode="r", allow_pickle=False)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the header is a Python literal: it fails as syntax, tokens, types, sizes or memory
        raise ValueError(f"{path}: missing, cut short or no array ({str(error)[:300]})") from None
