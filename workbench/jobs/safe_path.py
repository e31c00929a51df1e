"""Safe import paths: our Python processes import nothing from the current folder, which others may write.

`python -m` puts the current folder first, and so does an empty or relative entry of PYTHONPATH (see Python's "safe
path").
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PATH, _SAFE = "PYTHONPATH", "PYTHONSAFEPATH"
_OURS = Path(__file__).resolve().parents[2]  # the folder of our packages


def module(name: str, *arguments: str) -> list[str]:
    """The command line that runs a module of the project with this interpreter."""
    return [sys.executable, "-P", "-m", name, *arguments]


def environment(**more: str) -> dict[str, str]:
    """This process's environment with a safe path, for a child process and its children; `more` is added."""
    entries = [entry for entry in os.environ.get(_PATH, "").split(os.pathsep) if os.path.isabs(entry)]
    if (_OURS / "pyproject.toml").is_file() and str(_OURS) not in entries:  # a checkout, which may not be installed
        entries.append(str(_OURS))
    inherited = {name: value for name, value in os.environ.items() if name != _PATH}
    return {**inherited, **({_PATH: os.pathsep.join(entries)} if entries else {}), _SAFE: "1", **more}


def leave_current_folder() -> None:
    """Remove the current folder from the import path, where `-m` or PYTHONPATH put it, also for child processes.

    A checkout that is not installed stays in the path.
    """
    entries = os.environ[_PATH].split(os.pathsep) if os.environ.get(_PATH) else []
    put = {os.path.abspath(entry) for entry in entries if not os.path.isabs(entry)}
    if "-m" in sys.orig_argv[:-1] and not sys.flags.safe_path:
        put.add(os.getcwd())
    put.discard(str(_OURS))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in put]
    safe = environment()
    os.environ[_SAFE], os.environ[_PATH] = safe[_SAFE], safe.get(_PATH, "")  # an empty variable counts as unset
