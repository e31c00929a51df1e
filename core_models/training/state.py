"""Files of a training: checkpoints to average, and states to resume from.

A state has the weights, the optimizer, every process's random state and the position in the data.

    RUN/state/step-000500/{weights.safetensors, optimizer.pt, progress.json}  RUN/checkpoints/step-000500.safetensors

A state is written into a temporary folder and renamed when it is complete, so that an interrupted save never looks like
a state.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from core_models.checkpoint import SharedWeights, load_weights, whole_file
from core_models.config import WEIGHTS, TrainingConfig
from core_models.system import System
from core_models.training.optimizer_state import load_optimizer, unreadable, write_optimizer
from core_models.training.progress import PROGRESS, Progress, is_step, progress_of, states, whole_states

KEPT_STATES = 2


def save_state(
    folder: Path,
    weights: SharedWeights,
    optimizer: Mapping[str, Any],
    progress: Progress,
    random: Mapping[str, Tensor],
) -> None:
    """Write one state and drop older ones; optimizer: its state_dict; random: the result of `random_states`.

    Raises OSError that names the file, e.g. on a full disk; earlier states stay, partial files are removed.
    """
    for rest in folder.glob("*.part"):  # of a killed process; they may fill the disk
        shutil.rmtree(rest, ignore_errors=True)
    final = folder / f"step-{progress.step:06d}"
    if (final / PROGRESS).is_file():  # same step, so the same weights: only the progress has changed
        if progress_of(final).processes != progress.processes:  # each process has its own random state
            write_optimizer(final, optimizer, random)
        _write_progress(final, progress)
        return
    part = folder / f"{final.name}.part"
    try:
        weights.write(part / WEIGHTS)
        write_optimizer(part, optimizer, random)
        _write_progress(part, progress)
        _drop_states(folder, but=KEPT_STATES - 1)
        os.replace(part, final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _drop_states(folder: Path, but: int) -> None:
    """Remove all but the newest complete states; each is renamed first, so that a partial one looks incomplete."""
    newest = whole_states(folder)[-but:]
    try:
        for state in states(folder):
            if state not in newest:
                os.replace(state, state.with_name(f"{state.name}.old.part"))
                _remove_dropped(folder)
    except KeyboardInterrupt:
        _remove_dropped(folder)
        raise
    _remove_dropped(folder)  # those of a process that was killed


def _remove_dropped(folder: Path) -> None:
    for dropped in folder.glob("step-*.old.part"):
        shutil.rmtree(dropped, ignore_errors=True)


def keep_checkpoint(folder: Path, weights: SharedWeights, step: int, training: TrainingConfig) -> None:
    """Write the weights of this step if configured, and drop those that `keep_last` no longer covers."""
    regular = training.keep_every or step + 1  # no step so far is a multiple of step + 1
    if training.keep_last or step % regular == 0:
        weights.write(folder / f"step-{step:06d}.safetensors")
    names = [path.stem.removeprefix("step-") for path in folder.glob("step-*.safetensors")]
    # Later ones were left by an interrupted process: they are written again and must not displace current ones.
    steps = sorted(int(name) for name in names if is_step(name) and int(name) <= step)
    for old in steps[: max(0, len(steps) - training.keep_last)]:
        if old % regular:
            (folder / f"step-{old:06d}.safetensors").unlink(missing_ok=True)


def _write_progress(folder: Path, progress: Progress) -> None:
    with whole_file(folder / PROGRESS) as path:
        path.write_text(json.dumps(progress.model_dump()), encoding="utf-8")


def load_state(path: Path, system: System, optimizer: torch.optim.Optimizer, rank: int = 0) -> Progress:
    """Restore weights, optimizer and the random state of process `rank`; returns the progress.

    Raises CheckpointError if a file of the state cannot be read or fits another number of trained tensors.
    """
    try:
        progress = progress_of(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    load_weights(path / WEIGHTS, system)
    random = load_optimizer(path, optimizer, progress.processes)
    if rank < progress.processes:
        try:
            # Cloned: torch reads a generator's state from the start of the storage, not of the row.
            torch.set_rng_state(random["cpu"][rank].clone())
            if torch.cuda.is_available() and "cuda" in random:
                torch.cuda.set_rng_state(random["cuda"][rank].clone())
        except RuntimeError as error:
            raise unreadable(path, error) from None
    return progress


def random_states(accelerator: Accelerator) -> dict[str, Tensor]:
    """The random states of all processes by device type: [processes, bytes], the same on every process."""
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return {kind: accelerator.gather(state[None].to(accelerator.device)).cpu() for kind, state in states.items()}
