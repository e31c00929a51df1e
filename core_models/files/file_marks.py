"""Marks record which files a command wrote, with digests, so that it never replaces other files.

A folder of ours has its mark in it, `.workbench.json`. Files with a common prefix, e.g. PREFIX.en and PREFIX.de, may be
in any folder, with their mark `.PREFIX.workbench.json` next to them. They are replaced together: as soon as a folder
`.PREFIX.new-*` has all of them they count as replaced, and `mended` moves them to their places.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from core_models.files.atomic_files import named
from core_models.files.atomic_folders import (
    FolderError,
    alone,
    clear_up,
    mend,
    others,
    resolved,
    temporary_path,
    things,
    write_through,
)
from core_models.files.run_files import RECORD, read_json

MARK = ".workbench.json"
_NEW = re.compile(r"\.(?P<prefix>.+)\.new-[0-9a-f]{16}", re.DOTALL)
_SECONDS = 60.0  # how long to wait for another writer of the same files


def mark(folder: Path, by: str, **also: Any) -> None:
    """Write a mark of all files in a folder and the command that wrote them."""
    files = {name: digest(folder / name) for name in things(folder) if name != MARK}
    (folder / MARK).write_text(json.dumps({"by": by, "files": files, **also}, indent=1), encoding="utf-8")


def is_marked(folder: Path) -> bool:
    """True if a folder has a mark."""
    return (folder / MARK).is_file()


def unmarked(folder: Path, by: str) -> str | None:
    """The relative path of the first file that is not, with its current content, in the command's mark."""
    files = _files(folder / MARK, by)
    return others(folder, lambda name: name == MARK or _as_noted(folder / name, files.get(name)))


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_replace_files(
    prefix: Path, endings: Sequence[str], by: str, recognized: Callable[[Path], bool] = lambda path: False
) -> Iterator[Path]:
    """Yield a folder in which to write NAME.ENDING for some of the endings; they replace all existing ones together.

    prefix: folder and NAME. by: the command, for the mark and for messages. recognized: accepts a file of ours that is
    in no mark. Raises FolderError if an existing file is not ours, before anything is changed.
    """
    prefix = resolved(prefix.parent) / prefix.name
    prefix.parent.mkdir(parents=True, exist_ok=True)
    names = [f"{prefix.name}.{ending}" for ending in endings]
    with alone(prefix, _SECONDS):
        _put_in_place(prefix)
        files = _files(_mark_of(prefix), by)
        for path in map(prefix.with_name, names):
            if os.path.lexists(path) and not _as_noted(path, files.get(path.name)) and not recognized(path):
                raise FolderError(
                    f"{path}: `workbench {by}` did not make this file, or it was changed since; move it away, or name "
                    "another place"
                )
        part = temporary_path(prefix, "part")
        part.mkdir()
        try:
            with named(prefix):
                yield part
                mark(part, by, instead_of=names)
                write_through(part)
                os.rename(part, temporary_path(prefix, "new"))
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        _put_in_place(prefix)


def mended(path: str | Path) -> Path:
    """Repair what a killed process left of a file that we may have written; returns the path to read."""
    path = Path(path)
    with suppress(OSError):
        for prefix in map(_prefix_of, os.listdir(path.parent)):
            if prefix and path.name.startswith(f"{prefix}."):
                with suppress(FolderError), alone(resolved(path.parent) / prefix, _SECONDS):
                    _put_in_place(resolved(path.parent) / prefix)
    return path if path.exists() else mend(path.parent) / path.name


def _put_in_place(prefix: Path) -> None:
    """Finish an interrupted replacement, and remove unfinished files."""
    clear_up(prefix)
    for new in [path for path in prefix.parent.iterdir() if _prefix_of(path.name) == prefix.name]:
        if is_marked(new):  # the mark is moved last
            noted = _read(new / MARK)
            new_names, old_names = (_named_after(prefix, noted.get(names)) for names in ("files", "instead_of"))
            for name in old_names - new_names:
                prefix.with_name(name).unlink(missing_ok=True)
            for name in new_names:
                if (new / name).is_file():
                    os.replace(new / name, prefix.with_name(name))
            os.replace(new / MARK, _mark_of(prefix))
        new.rmdir()


def _named_after(prefix: Path, names: Any) -> set[str]:
    """The names in a mark that are files with the prefix; a mark may have been written by anybody."""
    texts = {name for name in names if isinstance(name, str)} if isinstance(names, list | dict) else set()
    return {name for name in texts if name.startswith(f"{prefix.name}.") and Path(name).name == name}


def _prefix_of(name: str) -> str:
    """The prefix of a `.PREFIX.new-*` folder name; "" for other names."""
    match = _NEW.fullmatch(name)
    return match["prefix"] if match else ""


def _mark_of(prefix: Path) -> Path:
    return prefix.with_name(f".{prefix.name}{MARK}")


def _files(path: Path, by: str) -> dict[str, str]:
    """The files in a command's mark; empty if it is missing, unreadable or another command's."""
    content = _read(path)
    files = content.get("files")
    return files if content.get("by") == by and isinstance(files, dict) else {}


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        content = read_json(path, RECORD)
        return content if isinstance(content, dict) else {}
    return {}


def _as_noted(path: Path, noted: object) -> bool:
    return noted is not None and path.is_file() and digest(path) == noted
