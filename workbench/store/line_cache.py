"""In-memory cache of the lines of text files, valid while they are unchanged: a page reads a test set at every click.

Files with the same text share one list, so ten systems do not hold a test set ten times. Callers must not change the
lists. Knows files, no runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from core_models.files.run_files import LINES, read_bytes
from core_models.text.parallel import split_lines, stored_lines

MOST_BYTES = 256_000_000  # of text that is kept, each text counted once; its strings take about twice as much


class _Kept(NamedTuple):
    changed: tuple[int, ...]
    digest: bytes
    size: int
    lines: list[str]


_KEPT: OrderedDict[Path, _Kept] = OrderedDict()  # least recently used first
_LOCK = threading.Lock()


def lines_of(path: Path) -> list[str]:
    """`core_models.text.parallel.stored_lines` of a file, read again only where the file has changed."""
    with _LOCK, contextlib.suppress(OSError):
        status = path.stat()
        changed = (status.st_mtime_ns, status.st_size, status.st_ino)
        entry = _KEPT.get(path)
        if entry is None or entry.changed != changed:
            entry = _KEPT[path] = _read(path, changed)
        _KEPT.move_to_end(path)
        while len(_KEPT) > 1 and sum({text.digest: text.size for text in _KEPT.values()}.values()) > MOST_BYTES:
            _KEPT.popitem(last=False)
        return entry.lines
    return stored_lines(path)  # raises the error of reading


def _read(path: Path, changed: tuple[int, ...]) -> _Kept:
    content = read_bytes(path, LINES)
    digest = hashlib.blake2b(content, digest_size=16).digest()
    same = next((entry.lines for entry in _KEPT.values() if entry.digest == digest), None)
    return _Kept(changed, digest, len(content), split_lines(content, path) if same is None else same)
