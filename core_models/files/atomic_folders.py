"""Atomic replacement of folders; files that we did not write are never replaced.

    NAME                  the complete result
    .NAME.part-*          being written; renamed to NAME when complete, otherwise removed
    .NAME.old-*           the previous NAME, renamed; restored if NAME is missing, otherwise removed
    .NAME.writing.lock    exists and is locked while a process writes

Readers call `mend` first, which repairs what a killed process left.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from core_models.files.atomic_files import named

_LEFT = re.compile(r"\.(?P<name>.+)\.(?P<kind>part|old)-[0-9a-f]{16}", re.DOTALL)
_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db", "desktop.ini"}  # written by file managers into any folder
_GAP_SECONDS = 10.0  # how long a reader waits for a writer between two renames
_WRITER_SECONDS = 60.0
Foreign = Callable[[Path], str | None]  # the relative path of the first file in a folder that is not ours


class FolderError(ValueError):
    """A folder that may not be written; the message says which, why, and what to do."""


@contextmanager
def atomic_replace_folder(
    folder: str | Path, by: str, foreign: Foreign, patience: float = _WRITER_SECONDS
) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` on success and is removed on failure.

    by: the command, for messages. foreign: finds a file in the existing folder that may not be replaced. patience:
    seconds to wait for another writer of the same folder. Raises FolderError before anything is changed.
    """
    final = resolved(folder)
    if Path.cwd().is_relative_to(final):
        relation = "is" if Path.cwd() == final else "holds"
        raise FolderError(
            f"{folder}: {relation} the current folder, which cannot be replaced; name another, or go out of it"
        )
    final.parent.mkdir(parents=True, exist_ok=True)
    with alone(final, patience, folder):
        clear_up(final)
        refuse_foreign(Path(folder), by, foreign)
        part = temporary_path(final, "part")
        part.mkdir()
        try:
            with named(Path(folder)):
                yield part
                write_through(part)
                _swap(part, final)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        clear_up(final)  # removes the previous folder


def refuse_foreign(folder: Path, by: str, foreign: Foreign) -> None:
    """Raise FolderError if an existing folder has files that we may not replace."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise FolderError(f"{folder}: a file is in the place of the folder; choose another name")
    foreign_name = foreign(folder)
    if foreign_name is not None:
        raise FolderError(
            f"{folder}: holds {foreign_name}, which `workbench {by}` did not make, or which was changed since; move it "
            "away, or name another folder"
        )


def mend(folder: str | Path) -> Path:
    """Repair what a killed process left of a result; returns the folder to read.

    Without write permission this is the previous result if only that one is complete.
    """
    folder = Path(folder)
    final = resolved(folder)
    parts, olds = _left(final)
    if not (parts or olds):
        return folder
    missing = bool(olds) and not final.exists()
    with suppress(FolderError, OSError), alone(final, _GAP_SECONDS if missing else 0):
        clear_up(final)
    if missing and not final.exists():
        _, olds = _left(final)
    return olds[-1] if olds and not final.exists() else folder


def folders_in(parent: Path) -> dict[str, Path]:
    """The results in a folder by name, each with the folder to read (see `mend`); without hidden ones."""
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return {}
    left = {match["name"] for name in names if (match := _LEFT.fullmatch(name))}
    shown = {name for name in names if not name.startswith(".")}
    return {name: mend(parent / name) if name in left else parent / name for name in sorted(shown | left)}


def is_left_over(name: str) -> bool:
    """True for the name of a temporary or of a previous folder."""
    return _LEFT.fullmatch(name) is not None


def remove(folder: Path) -> None:
    """Remove a result; if interrupted, a partial folder never looks complete."""
    final = resolved(folder)
    if final.exists():
        with alone(final, _WRITER_SECONDS):
            os.rename(final, temporary_path(final, "part"))
            clear_up(final)


def others(folder: Path, ours: Callable[[str], bool]) -> str | None:
    """The relative path of the first file, link or empty folder that `ours` rejects."""
    return next((name for name in things(folder) if not ours(name)), None)


def anything(folder: Path) -> str | None:
    """The relative path of the first file, link or empty folder; `others` for a folder that must be empty."""
    return others(folder, lambda name: False)


def things(folder: Path) -> Iterator[str]:
    """Relative paths of the files, links and empty folders below a folder, sorted; an empty folder ends in `/`."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_dir(follow_symlinks=False):
            if entry.name not in _OF_THE_SYSTEM:
                yield entry.name
            continue
        inside = list(things(Path(entry.path)))
        yield from (f"{entry.name}/{name}" for name in inside or [""])


@contextmanager
def alone(final: Path, patience: float, shown: str | Path | None = None) -> Iterator[None]:
    """Hold the lock for writing or repairing a folder; FolderError if another process holds it for too long."""
    path = final.with_name(f".{final.name}.writing.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise FolderError(
            f"{shown or final}: another process is writing it; wait until that has ended, or name another folder"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()


def clear_up(final: Path) -> None:
    """Restore the previous folder if the new one is missing, and remove the rest; call it within `alone`."""
    parts, olds = _left(final)
    if olds and not os.path.lexists(final):
        os.rename(olds.pop(), final)
    for old in olds:  # renamed, so that a partly removed one is never restored
        parts.append(temporary_path(final, "part"))
        os.rename(old, parts[-1])
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)


def _swap(part: Path, final: Path) -> None:
    old = temporary_path(final, "old")
    try:
        if os.path.lexists(final):
            os.rename(final, old)
        os.rename(part, final)
    except BaseException:
        if old.exists() and not os.path.lexists(final):
            os.rename(old, final)
        raise
    _write_through_entry(final.parent)


def _left(final: Path) -> tuple[list[Path], list[Path]]:
    """Temporary and previous folders of a result, each by age."""
    paths: dict[str, list[Path]] = {"part": [], "old": []}
    with suppress(OSError):
        for name in os.listdir(final.parent):
            match = _LEFT.fullmatch(name)
            if match and match["name"] == final.name:
                paths[match["kind"]].append(final.with_name(name))
        paths["old"].sort(key=lambda path: path.lstat().st_mtime)
    return paths["part"], paths["old"]


def temporary_path(final: Path, kind: str) -> Path:
    """A new temporary name that encodes `kind` and `final`."""
    return final.with_name(f".{final.name}.{kind}-{secrets.token_hex(8)}")


def resolved(folder: str | Path) -> Path:
    """Resolve links, so that the target of a link is replaced, not the link."""
    return Path(os.path.realpath(folder))


def write_through(folder: Path) -> None:
    """Sync all files to disk: a network disk may report only now that it is full."""
    for name in things(folder):
        if not name.endswith("/"):
            with _to_sync(folder / name) as file:
                os.fsync(file.fileno())


def _to_sync(path: Path) -> BinaryIO:
    """Opened for writing, since Windows syncs nothing else, or, if that is not allowed, for reading."""
    try:
        return path.open("r+b")
    except PermissionError:
        return path.open("rb")


def _write_through_entry(folder: Path) -> None:
    with suppress(OSError):  # some systems cannot open folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
