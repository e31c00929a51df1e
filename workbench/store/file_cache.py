"""In-memory cache of values computed from files, valid while the files are unchanged. Knows nothing of the values."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Value = TypeVar("Value")
_State = tuple[tuple[int, ...] | None, ...]


class KeptByFiles(Generic[Value]):
    """Least-recently-used cache of at most `most` values. Thread-safe: one thread computes, the others wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[tuple[str, ...], _State, Value]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, files: Iterable[str | os.PathLike[str]], compute: Callable[[], Value]) -> Value:
        """The value of a key, computed again if one of its files has appeared, disappeared or changed.

        An exception of `compute` is raised and not cached.
        """
        with self._lock:
            paths = tuple(os.fspath(file) for file in files)
            state = tuple(map(_state, paths))  # before reading: a change during the read is then noticed next time
            entry = self._kept.get(key)
            if entry is None or entry[:2] != (paths, state):
                entry = self._kept[key] = (paths, state, compute())
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return entry[2]


def _state(path: str) -> tuple[int, ...] | None:
    """Times, size and inode of a file, which change with its content; None for a missing file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: not a valid file name
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
