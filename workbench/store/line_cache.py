"""The lines of text files, kept in memory while the files stay the same: a page reads a test set at every click.

Files with the same text share one list, so ten systems do not hold a test set ten times. Whoever gets a list leaves it
as it is. Knows files, no runs.
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


_KEPT: OrderedDict[Path, _Kept] = OrderedDict()  # the one used last is the last
_LOCK = threading.Lock()


def lines_of(path: Path) -> list[str]:
    """`core_models.text.parallel.stored_lines` of a file, read again only where the file has changed."""
    with _LOCK, contextlib.suppress(OSError):
        found = path.stat()
        changed = (found.st_mtime_ns, found.st_size, found.st_ino)
        kept = _KEPT.get(path)
        if kept is None or kept.changed != changed:
            kept = _KEPT[path] = _read(path, changed)
        _KEPT.move_to_end(path)
        while len(_KEPT) > 1 and sum({text.digest: text.size for text in _KEPT.values()}.values()) > MOST_BYTES:
            _KEPT.popitem(last=False)
        return kept.lines
    return stored_lines(path)  # which says why it cannot


def _read(path: Path, changed: tuple[int, ...]) -> _Kept:
    content = read_bytes(path, LINES)
    digest = hashlib.blake2b(content, digest_size=16).digest()
    same = next((kept.lines for kept in _KEPT.values() if kept.digest == digest), None)
    return _Kept(changed, digest, len(content), split_lines(content, path) if same is None else same)
