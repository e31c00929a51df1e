"""The precision of a grid whose `precision` is auto: decided once for all its cells, so that they can be compared.

ROOT/NAME/precision.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from core_models.config import TrainingConfig
from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RECORD, read_json
from core_models.settings import Section, parse
from workbench.experiments.grid import Cell, cells
from workbench.experiments.train import run_config
from workbench.store.runs import PRECISION


class GridPrecision(Section):
    """What was decided, by which cell, and its seconds a step; no seconds where nothing was timed."""

    precision: str
    cell: str
    seconds: dict[str, float] = {}


def with_precision(cell: Cell, data: Path, device: str) -> Mapping[str, Any]:
    """The training settings of a cell that is not begun, with the precision of its grid in place of `auto`.

    The first process that asks decides; the others wait for it.
    """
    if parse(TrainingConfig, cell.settings, "training").precision != "auto":
        return cell.settings
    folder = cell.folder.parent
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{PRECISION}.lock"):
        if not (folder / PRECISION).is_file():
            decided = _of_earlier_cells(cell) or _timed(cell, data, device)
            write_atomic(folder / PRECISION, json.dumps(decided.model_dump(), indent=1))
    decided = parse(GridPrecision, read_json(folder / PRECISION, RECORD), str(folder / PRECISION))
    return {**cell.settings, "precision": decided.precision}


def _of_earlier_cells(cell: Cell) -> GridPrecision | None:
    """The precision of cells that were trained before grids decided; None without such cells."""
    for other in cells(cell.experiment, cell.folder.parents[1]):
        if precision := other.trained_precision:
            return GridPrecision(precision=precision, cell=other.name)
    return None


def _timed(cell: Cell, data: Path, device: str) -> GridPrecision:
    """Time steps of the grid's first system, the baseline of its comparisons."""
    from core_models.training.fit import precision_of_new

    experiment = cell.experiment
    first = cells(experiment, cell.folder.parents[1])[0]
    config = run_config(first.folder, experiment.systems[first.system], data, first.settings, experiment.search)
    timed = precision_of_new(config, first.folder, device)
    return GridPrecision(precision=timed.precision, cell=first.name, seconds=timed.seconds)
