"""Folders that appear whole or not at all, in the place of an earlier one; what is not ours is never replaced.

    NAME                  the result, whole
    .NAME.part-*          what is being written; it becomes NAME in one move, and goes if that never came
    .NAME.old-*           what NAME was before, moved aside in one move; put back where NAME is missing, else removed
    .NAME.writing.lock    held, and there, as long as somebody writes

Whoever opens a result asks `mend` for it first, which clears up what a killed process left. Knows no format.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from core_models.files.atomic_files import named

_LEFT = re.compile(r"\.(?P<name>.+)\.(?P<kind>part|old)-[0-9a-f]{16}", re.DOTALL)
_OF_THE_SYSTEM = {".DS_Store", "Thumbs.db", "desktop.ini"}  # written into any folder that is looked at
_GAP_SECONDS = 10.0  # a reader waits so long for a writer between two renames
_WRITER_SECONDS = 60.0
Foreign = Callable[[Path], str | None]  # the first thing in a folder, by its path in there, that is not ours


class FolderError(ValueError):
    """A folder that may not be written; the message says which, why, and what to do."""


@contextmanager
def atomic_replace_folder(
    folder: str | Path, by: str, foreign: Foreign, patience: float = _WRITER_SECONDS
) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `folder` when all went well, and vanishes when not.

    by: the command, for messages. foreign: what of a folder that is there may not be replaced. patience: seconds to
    wait for another process that writes the same. Raises FolderError before anything is changed.
    """
    final = resolved(folder)
    if Path.cwd().is_relative_to(final):
        raise FolderError(f"{folder}: is the current folder, which cannot be replaced; name another, or go out of it")
    final.parent.mkdir(parents=True, exist_ok=True)
    with alone(final, patience, folder):
        clear_up(final)
        refuse_foreign(Path(folder), by, foreign)
        part = beside(final, "part")
        part.mkdir()
        try:
            with named(Path(folder)):
                yield part
                write_through(part)
                _swap(part, final)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        clear_up(final)  # removes what was there before


def refuse_foreign(folder: Path, by: str, foreign: Foreign) -> None:
    """Raise FolderError where something in the place of a folder is not ours to replace."""
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
    """Where a result is to be read: `folder`, once what a killed process left beside it is cleared up.

    Where nothing may be changed, and only the result before is whole, that one, in its place.
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
    """The results in a folder by their names, each where it is to be read (see `mend`); no hidden ones."""
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return {}
    left = {match["name"] for name in names if (match := _LEFT.fullmatch(name))}
    shown = {name for name in names if not name.startswith(".")}
    return {name: mend(parent / name) if name in left else parent / name for name in sorted(shown | left)}


def is_left_over(name: str) -> bool:
    """Is this the name of what is being written, or of what was there before?"""
    return _LEFT.fullmatch(name) is not None


def remove(folder: Path) -> None:
    """Remove a result; killed on the way, half of it never looks like the whole."""
    final = resolved(folder)
    if final.exists():
        with alone(final, _WRITER_SECONDS):
            os.rename(final, beside(final, "part"))
            clear_up(final)


def others(folder: Path, ours: Callable[[str], bool]) -> str | None:
    """The first file, link or empty folder of a folder, by its path in there, that `ours` says No to."""
    return next((name for name in things(folder) if not ours(name)), None)


def anything(folder: Path) -> str | None:
    """`others` where nothing may be there at all."""
    return others(folder, lambda name: False)


def things(folder: Path) -> Iterator[str]:
    """Files, links and empty folders below a folder, by their paths in there, in order; an empty folder ends in `/`."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_dir(follow_symlinks=False):
            if entry.name not in _OF_THE_SYSTEM:
                yield entry.name
            continue
        inside = list(things(Path(entry.path)))
        yield from (f"{entry.name}/{name}" for name in inside or [""])


@contextmanager
def alone(final: Path, patience: float, shown: str | Path | None = None) -> Iterator[None]:
    """Held by who writes a folder or clears up beside it; FolderError where somebody else does for too long."""
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
    """For who is `alone`: put back what was moved aside, where nothing took its place, and remove the rest."""
    parts, olds = _left(final)
    if olds and not os.path.lexists(final):
        os.rename(olds.pop(), final)
    for old in olds:  # half of it, if this is killed, must not be put back
        parts.append(beside(final, "part"))
        os.rename(old, parts[-1])
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)


def _swap(part: Path, final: Path) -> None:
    old = beside(final, "old")
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
    """What is there of parts and of old results, each in the order of age."""
    paths: dict[str, list[Path]] = {"part": [], "old": []}
    with suppress(OSError):
        for name in os.listdir(final.parent):
            match = _LEFT.fullmatch(name)
            if match and match["name"] == final.name:
                paths[match["kind"]].append(final.with_name(name))
        paths["old"].sort(key=lambda path: path.lstat().st_mtime)
    return paths["part"], paths["old"]


def beside(final: Path, kind: str) -> Path:
    """A new name, from which `kind` and `final` can be told again."""
    return final.with_name(f".{final.name}.{kind}-{secrets.token_hex(8)}")


def resolved(folder: str | Path) -> Path:
    """Through links, so that what a link points to is replaced, and not the link."""
    return Path(os.path.realpath(folder))


def write_through(folder: Path) -> None:
    """Wait until all is on the disk: a network disk may say only now that it is full."""
    for name in things(folder):
        if not name.endswith("/"):
            with (folder / name).open("rb") as file:
                os.fsync(file.fileno())


def _write_through_entry(folder: Path) -> None:
    with suppress(OSError):  # some systems cannot open folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
