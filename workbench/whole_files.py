"""Small files that appear whole or not at all. Knows no format."""

from __future__ import annotations

from pathlib import Path

from core_models.whole_files import replacing

__all__ = ["replacing", "write_whole"]


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file, a text as UTF-8."""
    with replacing(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
