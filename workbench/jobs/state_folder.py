"""Where this user's own state lies, outside every folder of runs: what somebody else wrote is never read from there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

NAME = "nmt-workbench"
HOME = "XDG_STATE_HOME"  # in the environment: another place for it


class StateFolderError(OSError):
    """No folder of state, or one that others may write; the message says which and what to do."""


def state_folder() -> Path:
    """The folder; it need not exist yet. A relative XDG_STATE_HOME is passed over, as its specification says.

    Raises StateFolderError where this user has no home.
    """
    said = Path(os.environ.get(HOME, ""))
    try:
        return (said if said.is_absolute() else Path.home() / ".local" / "state") / NAME
    except RuntimeError:
        raise StateFolderError(f"this user has no home folder; name a place for its state in {HOME}") from None


def make(folder: Path) -> Path:
    """Make a folder below `state_folder()`, for this user alone. Raises OSError where that cannot be."""
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own():
        raise StateFolderError(
            f"{state_folder()}: it belongs to somebody else, or others may write there; remove it, or name another "
            f"place in {HOME}"
        )
    return folder


def is_own() -> bool:
    """Is the folder there, no link, this user's, and nobody else's to write?"""
    try:
        found = state_folder().lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (
        not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
    )
