"""The lines (dash and marker) of the runs of a folder for good, in RUNS/.run-styles.json; its name gives a run's color.

    {"version": 1, "lines": {"demo/transformer": 9, "mine/transformer": 0}}    numbers of `theme.LINES`

A run keeps its line when others come or go, and gets it back when it comes back. Runs of the same color have different
lines while there are any, and so do runs of the same folder where that is possible. Where nothing can be written the
lines last as long as the process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RESULT, read_json
from workbench.plotting import theme
from workbench.store import read_only
from workbench.store.file_cache import KeptByFiles
from workbench.store.runs import DEPTH, Run, runs_folder

FILE, VERSION = ".run-styles.json", 1
_PATIENCE = 2.0  # seconds that a change waits for another one
_READ: KeptByFiles[dict[str, int]] = KeptByFiles(64)
_UNWRITTEN: dict[Path, dict[str, int]] = {}  # of the folders that cannot be written


def keep(root: Path, names: Sequence[str]) -> None:
    """Give every run of a runs folder that has no line one, by name."""
    lines = _lines(root)
    if set(names) <= lines.keys():
        return
    try:
        read_only.check()
        with FileLock(root / f"{FILE}.lock", timeout=_PATIENCE):
            lines = theme.with_lines(names, _lines(root))
            write_atomic(root / FILE, json.dumps({"version": VERSION, "lines": lines}, indent=1, ensure_ascii=False))
    except (OSError, read_only.ReadOnlyError):
        _UNWRITTEN[root] = theme.with_lines(names, lines)


def lines_of(runs: Iterable[Run]) -> dict[str, int]:
    """The lines of those runs that have one, by name; a checkpoint (RUN@step) has none."""
    found = {}
    for run in runs:
        numbers = (_lines(root).get(name) for root, name in _places(run))
        number = next((number for number in numbers if number is not None), None)
        if number is not None and not run.step:
            found[run.name] = number
    return found


def _places(run: Run) -> Iterator[tuple[Path, str]]:
    """The folders that may know a run, with its name there; an exhibit is known to the user's runs folder."""
    folder = Path(os.path.abspath(run.folder))
    for root in folder.parents[:DEPTH]:
        yield root, folder.relative_to(root).as_posix()
    yield runs_folder(), run.name


def _lines(root: Path) -> Mapping[str, int]:
    path = root / FILE
    return {**_UNWRITTEN.get(root, {}), **_READ.get(path, [path], lambda: _read(path))}


def _read(path: Path) -> dict[str, int]:
    """The lines in a file, without what is no line; a missing or broken file has none."""
    try:
        stored = read_json(path, RESULT)
    except (OSError, ValueError):
        return {}
    lines = stored.get("lines") if isinstance(stored, dict) and stored.get("version") == VERSION else None
    known = lines.items() if isinstance(lines, dict) else ()
    return {name: number for name, number in known if type(number) is int and 0 <= number < len(theme.LINES)}
