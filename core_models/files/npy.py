"""Memory-mapped `.npy` files that may be truncated or replaced by something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from core_models.files.run_files import ARRAY, check


def map_array(path: Path) -> np.memmap:
    """Map the array of a `.npy` file into memory, so that a wrong size in the header allocates nothing.

    Raises ValueError for any other file, including pickles.
    """
    with _refused(path):
        check(path, ARRAY)
        return np.load(path, mmap_mode="r", allow_pickle=False)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the header is a Python literal, which fails in many ways
        raise ValueError(f"{path}: missing, cut short or no array ({str(error)[:300]})") from None
