"""Which learning rate counts: of trainings that differ in it alone, those with the lowest dev loss.

Grids say what was trained, EXPERIMENT.dev-losses.csv beside the other result files how it ended. Trains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from core_models.config import TrainingConfig
from workbench.experiments.grid import Experiment, read_experiment, training_key
from workbench.papers.records import records
from workbench.store.file_cache import KeptByFiles

LOSSES = ".dev-losses.csv"
LEAST_ERRORS = 2  # standard errors by which dev losses have to be lower
# Of a training without its rate and seed: rate -> (seed, last dev loss). Two grids may hold the same training or, since
# machines differ in their last bits, two trainings of one seed.
Ends = dict[str, dict[float, set[tuple[int, float]]]]
_GRIDS: KeptByFiles[Experiment] = KeptByFiles(256)
_ENDS: KeptByFiles[Ends] = KeptByFiles(8)


def better_rate(grid: Path, system: str, baseline: str) -> float | None:
    """The rate at which two systems of a grid end with lower dev losses together; None if none is known to be better.

    Their sum has to be lower by more than two standard errors.
    """
    other = other_rates(grid, system, baseline)
    better = {rate: total for rate, (total, errors) in other.items() if errors > LEAST_ERRORS}
    return min(better, key=better.__getitem__, default=None)


def other_rates(grid: Path, system: str, baseline: str) -> dict[float, tuple[float, float]]:
    """Of each other rate of two systems of a grid: the sum of their mean dev losses, and by how much it is lower.

    By how much: in standard errors, by the spread of seeds that all rates have in common; negative if it is higher.
    Dev losses: nats a target piece at the last validations, in any grid of the folder with this text and training.
    """
    if not grid.is_file():
        return {}
    experiment, ends = _read(grid), _ends(grid.parent)
    both = [
        {
            rate: [loss for _, loss in sorted(losses)]
            for rate, losses in ends.get(_trained(experiment, name), {}).items()
        }
        for name in {system, baseline}
    ]
    together = {rate: sum(mean(one[rate]) for one in both) for rate in set.intersection(*map(set, both))}
    rate = _rate(experiment)
    if rate not in together:
        return {}
    variances = [_variance(one) for one in both]

    def errors(other: float) -> float:
        counts = (1 / len(one[other]) + 1 / len(one[rate]) for one in both)
        error = math.sqrt(sum(variance * count for variance, count in zip(variances, counts, strict=True)))
        lower = together[rate] - together[other]
        return lower / error if error else lower * math.inf

    return {other: (together[other], errors(other)) for other in sorted(together) if other != rate}


def _variance(by_rate: Mapping[float, Sequence[float]]) -> float:
    """Of seeds, pooled over rates; infinite if no rate has two."""
    freedom = sum(len(losses) - 1 for losses in by_rate.values())
    squares = sum((loss - mean(losses)) ** 2 for losses in by_rate.values() for loss in losses)
    return squares / freedom if freedom else math.inf


def _read(grid: Path) -> Experiment:
    return _GRIDS.get(grid, (grid,), lambda: read_experiment(grid))


def _ends(folder: Path) -> Ends:
    """The dev losses at the end of the trainings of all grids of a folder that have them."""
    files = sorted((folder / "results").glob(f"*{LOSSES}"))
    grids = [folder / f"{file.name.removesuffix(LOSSES)}.yaml" for file in files]
    return _ENDS.get(folder, (*files, *grids), lambda: _read_ends(files, grids))


def _read_ends(files: Sequence[Path], grids: Sequence[Path]) -> Ends:
    import pandas as pd

    from analyses.dev_losses import last_losses

    found: Ends = {}
    for file, grid in zip(files, grids, strict=True):
        experiment = _read(grid) if grid.is_file() else None
        for row in records(last_losses(pd.read_csv(file))):
            if experiment is not None and row["system"] in experiment.systems:
                by_rate = found.setdefault(_trained(experiment, row["system"]), {})
                by_rate.setdefault(_rate(experiment), set()).add((int(row["seed"]), float(row["dev_loss"])))
    return found


def _rate(experiment: Experiment) -> float:
    return float(experiment.training.get("learning_rate", TrainingConfig.model_fields["learning_rate"].default))


def _trained(experiment: Experiment, system: str) -> str:
    """What a system's trainings are but for rate and seed, as a key."""
    return training_key(experiment, system, ["learning_rate"])
