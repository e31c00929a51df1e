"""What the project finds around it: its folder of readable data, the processors, the C library's allocator.

It knows the two places the folder can be in, and nothing about what is in it.
"""

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the `data/` folder: the repository's in a checkout, the one inside the package in an installed wheel.

    Raises FileNotFoundError when neither holds `controlled/`.
    """
    package = Path(__file__).resolve().parent
    candidates = (package.parent / "data", package / "_data")
    for folder in candidates:
        if (folder / "controlled").is_dir():
            return folder
    places = " or ".join(str(folder) for folder in candidates)
    raise FileNotFoundError(f"no data folder with controlled/ in {places}: install the package again")


def processors() -> int:
    """How many processors this process may use: where the system says it those it was given, else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allocator_settings() -> dict[str, str]:
    """Environment that keeps glibc from giving large tensors' pages back at every step (a fifth of the training time on
    CPUs). It works only when it is set before the process starts; other C libraries ignore it."""
    return {
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
        "MALLOC_TOP_PAD_": str(1 << 28),
    }
