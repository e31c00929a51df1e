"""Checked opening and reading of the files of runs and of prepared text.

Only regular files, or links to them, up to the size limit of their kind are opened: never a device, a named pipe or a
socket, which could block or be endless. Anything else raises an OSError with a readable `strerror` and the path as
`filename`, so that readers handle it like a missing file.

Texts named on the command line are not read this way: there a pipe is a valid file.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from io import BufferedReader, FileIO
from typing import Any

# Size limits in bytes: about ten times what 100,000 segments, n-best lists of 100 or the longest training need.
CONFIGURATION = 1 << 20  # config.yaml, data.yaml
RECORD = 1 << 24  # what says little: progress.json, meta.json, a job
VOCABULARY = 1 << 28
LOG = 1 << 30  # training.jsonl
RESULT = 1 << 30  # one JSON value for a whole test set: scores, an index of traces
LINES = 1 << 32  # texts, and one JSON record a sentence: details.jsonl
TREES = 1 << 36  # trees.jsonl, of which one record is read
TREE = 1 << 28  # one such record
ARRAY = 1 << 40  # .npy files are mapped, not read
TENSORS = 1 << 38  # weights and the optimizer's state


class UnfitFile(OSError):
    """A path that is no regular file, or a file above the size limit of its kind."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(errno.EINVAL, why, os.fspath(path))


def check(path: str | os.PathLike[str], most: int) -> None:
    """Raise OSError unless the path is a regular file of at most `most` bytes, for libraries that open it."""
    try:
        status = os.stat(path)
    except ValueError:  # a NUL, or half a character
        raise UnfitFile(path, "this is no path of a file") from None
    _check(status, path, most)


def open_file(path: str | os.PathLike[str], most: int) -> BufferedReader:
    """Open a file for reading bytes; raises OSError, UnfitFile if it is no regular file or above `most` bytes."""
    check(path, most)  # before opening: opening a device may have effects
    # Without blocking: the path may have become a named pipe without a writer.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _check(os.fstat(number), path, most)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def open_to_write(path: str | os.PathLike[str], append: bool = False) -> FileIO:
    """Open a regular file for unbuffered writing, truncated or for appending; it is created if missing.

    Never through a link: in somebody else's run it may point to any file of ours. Raises OSError, UnfitFile if the path
    is anything else.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0) | getattr(os, "O_BINARY", 0)
    # Without blocking: a named pipe may have no reader.
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnfitFile(path, "a link, through which nothing is written") from None
        if error.errno == errno.ENXIO:
            raise UnfitFile(path, "a named pipe, not a file") from None
        raise
    try:
        _check(os.fstat(number), path, TENSORS)
        if not append:
            os.truncate(number, 0)
        return FileIO(number, "ab" if append else "wb")
    except BaseException:
        os.close(number)
        raise


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a whole file; raises OSError."""
    with open_file(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:  # it has grown since
        raise UnfitFile(path, _too_large(most))
    return content


def read_json(path: str | os.PathLike[str], most: int) -> Any:
    """Read a JSON file; raises OSError, and ValueError for invalid or too deeply nested JSON."""
    return parse_json(read_bytes(path, most))


def parse_json(content: str | bytes) -> Any:
    """Parse one JSON value; raises ValueError for invalid or too deeply nested JSON."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _check(status: os.stat_result, path: str | os.PathLike[str], most: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise UnfitFile(path, f"{_KINDS.get(stat.S_IFMT(status.st_mode), 'something else')}, not a file")
    if status.st_size > most:
        raise UnfitFile(path, _too_large(most))


def _too_large(most: int) -> str:
    return f"larger than the {most >> 20:,} MiB that a file of its kind may have"


_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
