"""Files that appear whole or not at all, also where two processes write one at the same moment. Knows no format."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place when all went well, and vanishes when not."""
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    # With the permissions of any new file. Asking for the mask of a process changes it for its other threads too.
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file, a text as UTF-8."""
    with replacing(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
