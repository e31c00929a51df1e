"""Import of translations that were made elsewhere: plain text, one line per sentence, becomes outside runs.

Everything is read and checked before anything is written. Knows files and run folders, no models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from core_models.config import CONFIG
from core_models.files.atomic_folders import anything, atomic_replace_folder, mend, refuse_foreign
from core_models.settings import write_yaml
from core_models.text.parallel import TextError, explain_mismatch, read_lines, read_parallel, split_lines
from workbench.store import read_only
from workbench.store.runs import OutsideConfig, Run, RunError, open_run
from workbench.store.translation_writer import foreign_to_translations, write_hypotheses
from workbench.store.translations import TestSet

FOLDER = "outside"  # of imported runs, below the runs folder
_COMMAND = "runs import-translations"
_NAME = re.compile(r"\w[\w.+ -]*")  # what may be a folder on every system, and no RUN@step


def read_test_set(name: str, source: Path, references: Sequence[Path] = (), documents: Path | None = None) -> TestSet:
    """Read a test set from plain or gzipped files, one line per sentence. Raises TextError if they do not match."""
    _check_name("test set", name)
    texts = [read_parallel(source, path, documents, name) for path in references] or [
        read_parallel(source, None, documents, name)
    ]
    lines = [text.targets for text in texts if text.targets is not None]
    return TestSet(name, texts[0].sources, lines[0] if lines else None, texts[0].documents, tuple(lines[1:]))


def import_translations(folder: Path, test_set: TestSet, source: Path, systems: Mapping[str, Path]) -> list[Run]:
    """Write a run below `folder` for each system with its translations of the test set, after checking all.

    source: the file of the test set's sources, for messages about files that do not match. An existing system gets the
    test set in addition to those it has. Raises RunError and TextError.
    """
    for name in systems:
        _check_name("system", name)
    translations = {name: _checked(read_lines(path), path, test_set, source) for name, path in systems.items()}
    runs = [_run(folder / name) for name in systems]
    for run in runs:  # check all before writing the first
        _refuse_foreign(run, test_set)
    for run, (name, path) in zip(runs, systems.items(), strict=True):
        _write(run, test_set, translations[name], path.name)
    return runs


def import_content(root: Path, name: str, content: bytes, origin: str, test_set: TestSet) -> Run:
    """Write a file's content as the translations of a system that has none of this test set yet.

    origin: the name of the file. The run lies in the folder `outside` below `root`. Raises RunError, TextError and
    ReadOnlyError.
    """
    read_only.check()
    _check_name("system", name)
    run = _run(root / FOLDER / name)
    if test_set.name in run.translated():
        raise RunError(f"{FOLDER}/{name} has translations of {test_set.name} already; give this system another name")
    lines = _checked(split_lines(content, origin), origin, test_set, test_set.name)
    _refuse_foreign(run, test_set)
    _write(run, test_set, lines, origin)
    return run


def _checked(lines: list[str], origin: Path | str, test_set: TestSet, source: Path | str) -> list[str]:
    """The translations of a test set; raises TextError, with the names of both, if they are not one a sentence."""
    if len(lines) != len(test_set.sources):
        raise TextError(explain_mismatch(source, test_set.sources, origin, lines))
    return lines


def _refuse_foreign(run: Run, test_set: TestSet) -> None:
    if (run.folder / CONFIG).is_file():
        refuse_foreign(run.translations_folder(test_set.name), _COMMAND, foreign_to_translations)
    else:
        refuse_foreign(run.folder, _COMMAND, anything)


def _write(run: Run, test_set: TestSet, lines: Sequence[str], origin: str) -> None:
    if (run.folder / CONFIG).is_file():
        write_hypotheses(run, test_set, lines, origin)
        return
    with atomic_replace_folder(run.folder, _COMMAND, anything) as part:
        write_yaml(part / CONFIG, OutsideConfig(name=run.name).model_dump())
        write_hypotheses(Run(part, run.name), test_set, lines, origin)


def _run(folder: Path) -> Run:
    """The outside run of a folder, which need not exist yet; raises RunError for a trained run."""
    if not (mend(folder) / CONFIG).is_file():
        return Run(folder, folder.name)
    run = open_run(folder)
    if not run.outside:
        raise RunError(f"{folder}: a trained run is here; choose another --out, or another name for the system")
    return run


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RunError(
            f"the {what} {name!r} cannot be a folder's name: begin with a letter or digit and go on with these, "
            "spaces, dots, + and -"
        )
