"""The folder of this user's own state, outside of all runs folders, where no other user can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

NAME = "nmt-workbench"
HOME = "XDG_STATE_HOME"  # environment variable: another parent folder


class StateFolderError(OSError):
    """A missing state folder, or one that others may write; the message says which and what to do."""


def state_folder() -> Path:
    """The state folder, which need not exist. A relative XDG_STATE_HOME is ignored, as its specification says.

    Raises StateFolderError for a user without a home folder.
    """
    configured = Path(os.environ.get(HOME, ""))
    try:
        return (configured if configured.is_absolute() else Path.home() / ".local" / "state") / NAME
    except RuntimeError:
        raise StateFolderError(f"this user has no home folder; name a place for its state in {HOME}") from None


def make(folder: Path) -> Path:
    """Create a folder below `state_folder()` for this user alone. Raises OSError."""
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own():
        raise StateFolderError(
            f"{state_folder()}: it belongs to somebody else, or others may write there; remove it, or name another "
            f"place in {HOME}"
        )
    return folder


def is_own() -> bool:
    """Return True if the state folder exists, is no link, and only this user can write it."""
    try:
        status = state_folder().lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and (
        not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)
    )
