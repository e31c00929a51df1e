"""What was computed from files, kept in memory as long as these are as they were. Knows nothing of what it is."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Value = TypeVar("Value")
_State = tuple[tuple[int, ...] | None, ...]


class KeptByFiles(Generic[Value]):
    """So many values, the one used last dropped last. Several threads may ask: one computes, the others wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[tuple[str, ...], _State, Value]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, files: Iterable[str | os.PathLike[str]], compute: Callable[[], Value]) -> Value:
        """The value of a key, computed where one of its files has come, gone or changed; what `compute` raises is not
        kept."""
        with self._lock:
            paths = tuple(os.fspath(file) for file in files)
            state = tuple(map(_state, paths))  # first: what changes while it is read is seen the next time
            kept = self._kept.get(key)
            if kept is None or kept[:2] != (paths, state):
                kept = self._kept[key] = (paths, state, compute())
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept[2]


def _state(path: str) -> tuple[int, ...] | None:
    """As long as it stays, so does what is in the file; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: no name of a file
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
