"""Our own Python processes import nothing from the current folder, which may be anybody's: Python's "safe path".

`python -m` puts the current folder before everything else, and so does an empty or relative entry of PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PATH, _SAFE = "PYTHONPATH", "PYTHONSAFEPATH"
_OURS = Path(__file__).resolve().parents[2]  # where our packages lie


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours with this interpreter."""
    return [sys.executable, "-P", "-m", name, *arguments]


def environment(**more: str) -> dict[str, str]:
    """Our own environment for a process that we start, and for what that starts in its turn; `more` is set in it."""
    entries = [entry for entry in os.environ.get(_PATH, "").split(os.pathsep) if os.path.isabs(entry)]
    if (_OURS / "pyproject.toml").is_file() and str(_OURS) not in entries:  # a checkout, which may not be installed
        entries.append(str(_OURS))
    others = {name: value for name, value in os.environ.items() if name != _PATH}
    return {**others, **({_PATH: os.pathsep.join(entries)} if entries else {}), _SAFE: "1", **more}


def leave_current_folder() -> None:
    """Take the current folder out of this process's own path, where `-m` or PYTHONPATH put it there, and keep it out of
    what is started from here. A checkout that is not installed stays where it is."""
    entries = os.environ[_PATH].split(os.pathsep) if os.environ.get(_PATH) else []
    put = {os.path.abspath(entry) for entry in entries if not os.path.isabs(entry)}
    if "-m" in sys.orig_argv[:-1] and not sys.flags.safe_path:
        put.add(os.getcwd())
    put.discard(str(_OURS))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in put]
    safe = environment()
    os.environ[_SAFE], os.environ[_PATH] = safe[_SAFE], safe.get(_PATH, "")  # an empty one is none
