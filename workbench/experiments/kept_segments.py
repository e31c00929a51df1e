"""Statistics per segment of cells, kept in one file, so that cells trained on other machines still count in a table.

A table needs no more of a cell than these numbers: scores, intervals and paired differences follow from them. The file
is small enough to be committed with the results. Knows cells and statistics, no weights and no texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analyses.npz_cache import read_arrays, write_arrays
from core_models.settings import ConfigError

if TYPE_CHECKING:
    from analyses.scores import Statistics

SUFFIX = ".segments.npz"
ABOUT = "about"
NO_COUNTS = ("ter", "meteor")  # metrics whose statistics are no whole numbers; earlier versions cut them to such


class Cell(NamedTuple):
    """Whose statistics they are: of a system's training, on a test set, by a metric."""

    system: str
    seed: int
    test: str
    metric: str


Kept = dict[Cell, "Statistics"]
# The settings that a cell was made with, as keys to be compared: "trained", by `grid.training_key`, and "searched".
Made = Mapping[str, str]
MADE = ("trained", "searched")


def towards(references: Sequence[Sequence[str]]) -> str:
    """A digest of the reference translations that statistics were counted against."""
    return hashlib.sha256(json.dumps([list(stream) for stream in references]).encode()).hexdigest()


def read(path: Path, tests: Mapping[str, str], made: Mapping[str, Made] = MappingProxyType({})) -> Kept:
    """The statistics in a file, none if there is no file, without those that earlier versions cut to whole numbers.

    tests: digest of the references, of each test set at hand; made: of each system how its cells have to be made.
    Raises ConfigError for a file that is damaged, and for one of other references, trainings or searches.
    """
    from analyses.scores import Statistics

    if not path.is_file():
        return {}
    arrays = read_arrays(path)
    try:
        if arrays is None:
            raise ValueError("it cannot be read")
        about = json.loads(arrays[ABOUT].tobytes())
        kept, changed = {}, []
        for number, entry in enumerate(about["cells"]):
            values = arrays[str(number)]
            values = values.astype(np.int64) if _counts(values) else values
            if values.ndim != 2:
                raise ValueError("it holds no tables")
            cell = Cell(*entry["cell"])
            if cell.metric in NO_COUNTS and _counts(arrays[str(number)]):
                continue
            wanted = made.get(cell.system, {})
            changed += [f"{cell.system} was {how}" for how, key in wanted.items() if entry.get(how, key) != key]
            kept[cell] = Statistics(cell.metric, values, entry["signature"], entry["options"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: no statistics of an experiment's cells ({error}); take it out") from None
    if other := [test for test, digest in about["tests"].items() if tests.get(test, digest) != digest]:
        raise ConfigError(f"{path}: its cells were scored by other references of {other[0]} than are here; take it out")
    if changed:
        raise ConfigError(f"{path}: {changed[0]} with other settings than the grid has now; take it out")
    return kept


def digests(path: Path) -> dict[str, str]:
    """The digest of the references of each test set of a file; none if there is no such file."""
    return dict(_about(path).get("tests", {}))


def _about(path: Path) -> dict[str, Any]:
    arrays = read_arrays(path) if path.is_file() else None
    return {} if arrays is None or ABOUT not in arrays else json.loads(arrays[ABOUT].tobytes())


def write(path: Path, kept: Kept, tests: Mapping[str, str], made: Mapping[Cell, Made] = MappingProxyType({})) -> None:
    """Write the statistics; what the file knows of test sets and cells already stays known. Raises OSError.

    tests: as for `read`; made: how cells were made, where it is known.
    """
    before = _about(path)
    known: dict[Cell, Made] = {
        Cell(*entry["cell"]): {how: entry[how] for how in MADE if how in entry} for entry in before.get("cells", [])
    }
    known |= {cell: {**known.get(cell, {}), **how} for cell, how in made.items()}
    cells = sorted(kept)
    about = {
        "tests": {**before.get("tests", {}), **tests},
        "cells": [
            {"cell": list(cell), "signature": kept[cell].signature, "options": dict(kept[cell].options)}
            | dict(known.get(cell, {}))
            for cell in cells
        ],
    }
    arrays = {str(number): _narrow(kept[cell].values) for number, cell in enumerate(cells)}
    write_arrays(path, **{ABOUT: np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}, **arrays)


def _narrow(values: np.ndarray) -> np.ndarray:
    """Counts in the smallest type that holds them; other numbers, as METEOR's, as they are."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0)))) if _counts(values) else values


def _counts(values: np.ndarray) -> bool:
    return np.issubdtype(values.dtype, np.integer)
