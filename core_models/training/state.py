"""What training leaves on disk: checkpoints to average, and states to resume from: weights, optimiser, every process's
random state and the position in the data.

    RUN/state/step-000500/{weights.safetensors, optimizer.pt, progress.json}  RUN/checkpoints/step-000500.safetensors

A state is written into a folder of another name and renamed when it is whole, so that an interrupted save is never
taken for a state.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from core_models.checkpoint import load_weights, whole_file, write_weights
from core_models.config import WEIGHTS, TrainingConfig
from core_models.system import System
from core_models.training.optimizer_state import load_optimizer, unreadable, write_optimizer
from core_models.training.progress import PROGRESS, Progress, is_step, progress_of, states, whole_states

KEPT_STATES = 2


def save_state(
    folder: Path, system: System, optimizer: torch.optim.Optimizer, progress: Progress, random: dict[str, Tensor]
) -> None:
    """Write one state and drop older ones; random: what `random_states` gave on all processes together.

    Raises OSError that names the file, where the disk is full say; earlier states stay, and nothing half-written.
    """
    for rest in folder.glob("*.part"):  # of a process that was killed here: it may fill the disk that we need
        shutil.rmtree(rest, ignore_errors=True)
    final = folder / f"step-{progress.step:06d}"
    if (final / PROGRESS).is_file():  # no update lies between: only what is known of this step has grown
        if progress_of(final).processes != progress.processes:  # each has a random state of its own
            write_optimizer(final, optimizer, random)
        _write_progress(final, progress)
        return
    part = folder / f"{final.name}.part"
    try:
        write_weights(part / WEIGHTS, system)
        write_optimizer(part, optimizer, random)
        _write_progress(part, progress)
        _drop_states(folder, but=KEPT_STATES - 1)
        os.replace(part, final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _drop_states(folder: Path, but: int) -> None:
    """Remove all but the newest whole states; each first leaves in one move, for half a state must not look whole."""
    kept = whole_states(folder)[-but:]
    try:
        for state in states(folder):
            if state not in kept:
                os.replace(state, state.with_name(f"{state.name}.old.part"))
                _remove_dropped(folder)
    except KeyboardInterrupt:
        _remove_dropped(folder)
        raise
    _remove_dropped(folder)  # those of a process that was killed


def _remove_dropped(folder: Path) -> None:
    for dropped in folder.glob("step-*.old.part"):
        shutil.rmtree(dropped, ignore_errors=True)


def keep_checkpoint(folder: Path, system: System, step: int, training: TrainingConfig) -> None:
    """Write the weights of this step, if they are to be kept, and drop those that `keep_last` no longer covers."""
    regular = training.keep_every or step + 1  # of which no step so far is a multiple
    if training.keep_last or step % regular == 0:
        write_weights(folder / f"step-{step:06d}.safetensors", system)
    names = [path.stem.removeprefix("step-") for path in folder.glob("step-*.safetensors")]
    # Later ones were left by an interrupted process: they come again and must not push out those of now.
    steps = sorted(int(name) for name in names if is_step(name) and int(name) <= step)
    for old in steps[: max(0, len(steps) - training.keep_last)]:
        if old % regular:
            (folder / f"step-{old:06d}.safetensors").unlink(missing_ok=True)


def _write_progress(folder: Path, progress: Progress) -> None:
    with whole_file(folder / PROGRESS) as path:
        path.write_text(json.dumps(progress.model_dump()), encoding="utf-8")


def load_state(path: Path, system: System, optimizer: torch.optim.Optimizer, rank: int = 0) -> Progress:
    """Put weights, optimiser and the random state of process `rank` back as they were; returns the position.

    Raises CheckpointError where a file of the state cannot be read, or fits another number of trained tensors.
    """
    try:
        progress = progress_of(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    load_weights(path / WEIGHTS, system)
    random = load_optimizer(path, optimizer, progress.processes)
    if rank < progress.processes:
        try:
            # Cloned: torch reads a generator's state from where the storage begins, not from where the row does.
            torch.set_rng_state(random["cpu"][rank].clone())
            if torch.cuda.is_available() and "cuda" in random:
                torch.cuda.set_rng_state(random["cuda"][rank].clone())
        except RuntimeError as error:
            raise unreadable(path, error) from None
    return progress


def random_states(accelerator: Accelerator) -> dict[str, Tensor]:
    """The random states of all processes, by kind of device: [processes, bytes], the same on every process."""
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return {kind: accelerator.gather(state[None].to(accelerator.device)).cpu() for kind, state in states.items()}
