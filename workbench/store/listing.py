"""The current runs below a folder; runs whose files are unchanged are not read again.

The app calls this at every click. Knows which files make a run and name its translations, no Streamlit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from workbench.store import exhibits
from workbench.store.file_cache import KeptByFiles
from workbench.store.run_configs import MOST_RUNS
from workbench.store.runs import Run, RunError, examine, run_folders
from workbench.store.translations import Translations


@dataclass(frozen=True)
class Known:
    """A usable run: its test sets with the number of sentences in each, whether training has ended, its mechanisms."""

    name: str
    tests: Mapping[str, int] = field(default_factory=dict)
    finished: bool = True
    mechanisms: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Listing:
    """All runs, and the usable ones."""

    runs: tuple[Run, ...] = ()
    known: tuple[Known, ...] = ()


_KEPT: KeptByFiles[tuple[Run, Known | None]] = KeptByFiles(MOST_RUNS)


def listing(root: Path) -> Listing:
    """The runs below a folder, by name, and after them the exhibits."""
    entries = [_seen(folder, folder.relative_to(root).as_posix()) for folder in run_folders(root)]
    if (shown := exhibits.root()) is not None:
        names = {run.name for run, _ in entries}
        known = [(folder, folder.relative_to(shown).as_posix()) for folder in run_folders(shown)]
        entries += [_seen(folder, name) for folder, name in known if name not in names]
    return Listing(tuple(run for run, _ in entries), tuple(known for _, known in entries if known is not None))


def _seen(folder: Path, name: str) -> tuple[Run, Known | None]:
    """A run and its entry among the usable runs, None if it cannot be used."""

    def look() -> tuple[Run, Known | None]:
        run = examine(folder, name)
        return run, None if run.problem else Known(name, dict(_translated(run)), run.finished, run.mechanisms)

    run = Run(folder, name)
    return _KEPT.get((folder, name), [*run.decisive_files(), run.log], look)


def _translated(run: Run) -> Iterator[tuple[str, int]]:
    """The translated test sets with their numbers of sentences, without broken translations."""
    for test in run.tests():
        with suppress(RunError):
            yield test, len(Translations(run.translations_folder(test)))
