"""Which learning rate counts: of trainings that differ in it alone, those with the lowest dev loss.

Grids say what was trained, EXPERIMENT.dev-losses.csv beside the other result files how it ended. Trains nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

from core_models.config import TrainingConfig
from workbench.experiments.grid import BOOKKEEPING, Experiment, read_experiment
from workbench.papers.our_measurements import records
from workbench.store.file_cache import KeptByFiles

LOSSES = ".dev-losses.csv"
Losses = dict[str, dict[float, float]]  # of a training without its rate: rate -> dev loss
_GRIDS: KeptByFiles[Experiment] = KeptByFiles(256)
_LOSSES: KeptByFiles[Losses] = KeptByFiles(8)


def better_rate(grid: Path, system: str, baseline: str) -> float | None:
    """The rate at which two systems of a grid end with lower dev losses together; None if theirs is the best known.

    Dev loss: that of the last validation, the mean over seeds, in any grid of the folder with this text and training.
    """
    if not grid.is_file():
        return None
    experiment = _read(grid)
    losses = _losses(grid.parent)
    ours, theirs = (losses.get(_trained(experiment, name), {}) for name in (system, baseline))
    together = {rate: ours[rate] + theirs[rate] for rate in ours.keys() & theirs.keys()}
    rate = _rate(experiment)
    if rate not in together:
        return None
    best = min(together, key=together.__getitem__)
    return best if together[best] < together[rate] else None


def _read(grid: Path) -> Experiment:
    return _GRIDS.get(grid, (grid,), lambda: read_experiment(grid))


def _losses(folder: Path) -> Losses:
    """The dev losses of all grids of a folder that have them."""
    files = sorted((folder / "results").glob(f"*{LOSSES}"))
    grids = [folder / f"{file.name.removesuffix(LOSSES)}.yaml" for file in files]
    return _LOSSES.get(folder, (*files, *grids), lambda: _read_losses(files, grids))


def _read_losses(files: list[Path], grids: list[Path]) -> Losses:
    import pandas as pd

    ends: dict[str, dict[float, list[float]]] = {}
    for file, grid in zip(files, grids, strict=True):
        experiment = _read(grid) if grid.is_file() else None
        rows = pd.read_csv(file).sort_values("step", kind="stable").drop_duplicates(["system", "seed"], keep="last")
        for row in records(rows):
            if experiment is not None and row["system"] in experiment.systems:
                by_rate = ends.setdefault(_trained(experiment, row["system"]), {})
                by_rate.setdefault(_rate(experiment), []).append(row["dev_loss"])
    return {
        trained: {rate: sum(losses) / len(losses) for rate, losses in by_rate.items()}
        for trained, by_rate in ends.items()
    }


def _rate(experiment: Experiment) -> float:
    return float(experiment.training.get("learning_rate", TrainingConfig.model_fields["learning_rate"].default))


def _trained(experiment: Experiment, system: str) -> str:
    """What a system's trainings are but for rate and seed, as a key."""
    left_out = {*BOOKKEEPING, "learning_rate"}
    training = {name: value for name, value in experiment.training.items() if name not in left_out}
    parts = [experiment.data.model_dump(), experiment.systems[system], training, experiment.begin_from]
    return json.dumps(parts, sort_keys=True)
