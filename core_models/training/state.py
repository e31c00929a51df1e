"""What resuming needs, on disk: weights, optimiser, random states and the position in the data.

    RUN/state/step-000500/{weights.safetensors, optimizer.pt, progress.json}

A state is written into a folder of another name and renamed when it is whole, so that an interrupted save is never
taken for a state. The optimiser's tensors are read with `weights_only`: nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from core_models.assembly import System
from core_models.checkpoint import load_weights, write_weights
from core_models.config import WEIGHTS

KEPT_STATES = 2


@dataclass
class Progress:
    """Where training stands. `batch` counts the batches of `epoch` that are used up; scores are higher-is-better."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_step: int = 0
    validations_without_gain: int = 0
    reductions: int = 0
    plateau_waits: int = 0
    finished: bool = False
    reason: str = ""
    unmatched: list[str] = field(default_factory=list)


def save_state(folder: Path, system: System, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Write one state and drop older ones. Raises OSError where the disk is full; earlier states stay."""
    final = folder / f"step-{progress.step:06d}"
    part = folder / f"{final.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        write_weights(part / WEIGHTS, system)
        torch.save({"optimizer": optimizer.state_dict(), "random": _random_states()}, part / "optimizer.pt")
        (part / "progress.json").write_text(json.dumps(asdict(progress)), encoding="utf-8")
        if final.exists():
            shutil.rmtree(final)
        os.replace(part, final)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for old in _states(folder)[:-KEPT_STATES]:
        shutil.rmtree(old, ignore_errors=True)


def _states(folder: Path) -> list[Path]:
    """All states by step, not by name: step-1000000 is later than step-999999."""
    names = [path for path in folder.glob("step-*") if path.suffix != ".part"]
    return sorted(names, key=lambda path: int(path.name.removeprefix("step-")))


def latest_state(folder: Path) -> Path | None:
    """The newest whole state."""
    whole = [path for path in _states(folder) if (path / "progress.json").is_file()]
    return whole[-1] if whole else None


def read_progress(folder: Path) -> Progress | None:
    """Where a run's training stands, or None if it has no state."""
    state = latest_state(folder)
    return None if state is None else Progress(**json.loads((state / "progress.json").read_text(encoding="utf-8")))


def load_state(path: Path, system: System, optimizer: torch.optim.Optimizer) -> Progress:
    """Put weights, optimiser and random states back as they were; returns the position."""
    load_weights(path / WEIGHTS, system)
    stored = torch.load(path / "optimizer.pt", map_location="cpu", weights_only=True)
    optimizer.load_state_dict(stored["optimizer"])
    torch.set_rng_state(stored["random"]["cpu"])
    if torch.cuda.is_available() and "cuda" in stored["random"]:
        torch.cuda.set_rng_state_all(stored["random"]["cuda"])
    return Progress(**json.loads((path / "progress.json").read_text(encoding="utf-8")))


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states
