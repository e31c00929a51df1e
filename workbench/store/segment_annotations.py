"""Labels and scores of segments from elsewhere, as files beside the runs: ROOT/annotations/TEST/NAME.

A .csv or .tsv has a header and one row per segment, any other file one label or number per line. Knows files;
`analyses.segment_annotations` parses their content.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from analyses import segment_annotations
from core_models.files.atomic_files import write_atomic
from core_models.text.parallel import read_lines, split_lines
from workbench.store import read_only
from workbench.store.errors import RunError
from workbench.store.runs import folders_beside

TABLES = (".csv", ".tsv")
ENDINGS = (*TABLES, ".txt")
_FOLDER = "annotations"


def root_of(run: Path, test: str) -> Path:
    """The folder that holds a test set's annotations for a run: of `folders_beside` the first that has any."""
    places = folders_beside(run)
    return next((place for place in places if files(place, test)), places[-1])


def files(root: Path, test: str) -> list[Path]:
    """The annotations of a test set, by name."""
    folder = root / _FOLDER / test
    return sorted(path for path in folder.glob("*") if path.suffix in ENDINGS) if test else []


def read(path: Path, segments: int) -> pd.DataFrame:
    """The columns of one file; raises RunError if it does not have this number of segments."""
    return _parsed(path.name, path.stem, read_lines(path), segments)


def read_all(root: Path, test: str, segments: int) -> tuple[pd.DataFrame, list[str]]:
    """The columns of all readable files, and an error message for each other file."""
    parts, problems = [pd.DataFrame(index=range(segments))], []
    for path in files(root, test):
        try:
            parts.append(read(path, segments))
        except ValueError as error:
            problems.append(str(error))
    return pd.concat(parts, axis="columns"), problems


def columns(root: Path, test: str, segments: int) -> dict[str, Path]:
    """The label columns of all readable files, and the file of each."""
    file_of_column: dict[str, Path] = {}
    for path in files(root, test):
        try:
            labels = read(path, segments).select_dtypes(exclude="number")
        except ValueError:  # the page Sentences says what is wrong with it
            continue
        file_of_column |= dict.fromkeys(labels.columns, path)
    return file_of_column


def save(root: Path, test: str, name: str, content: bytes, segments: int) -> Path:
    """Save a file beside the runs after checking that it fits; one of the same name, whatever its ending, is replaced.

    Raises RunError and ReadOnlyError.
    """
    read_only.check()
    file_name = Path(name)
    if file_name.suffix.lower() not in ENDINGS:
        raise RunError(f"{name}: annotations are {', '.join(ENDINGS)} files; give it one of these endings")
    stem = re.sub(r"[^\w+-]+", "-", file_name.stem).strip("-") or "annotations"
    path = root / _FOLDER / test / f"{stem}{file_name.suffix.lower()}"
    _parsed(path.name, stem, split_lines(content, name), segments)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
    for former in files(root, test):
        if former.stem == stem and former != path:
            former.unlink(missing_ok=True)
    return path


def _parsed(name: str, stem: str, lines: list[str], segments: int) -> pd.DataFrame:
    try:
        if Path(name).suffix in TABLES:
            return segment_annotations.from_table("\n".join([*lines, ""]), stem, segments)
        return segment_annotations.from_lines(lines, stem, segments)
    except ValueError as error:
        raise RunError(str(error)) from None
