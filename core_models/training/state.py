"""What training leaves on disk: checkpoints to average, and states to resume from: weights, optimiser, every process's
random state and the position in the data.

    RUN/state/step-000500/{weights.safetensors, optimizer.pt, progress.json}  RUN/checkpoints/step-000500.safetensors

A state is written into a folder of another name and renamed when it is whole, so that an interrupted save is never
taken for a state. The optimiser's tensors are read with `weights_only`: nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from core_models.assembly import System
from core_models.checkpoint import CheckpointError, load_weights, whole_file, write_weights
from core_models.config import WEIGHTS, TrainingConfig
from core_models.run_files import RECORD, TENSORS, open_file, read_json

KEPT_STATES = 2


@dataclass
class Progress:
    """Where training stands. `batch` counts the batches of `epoch` that are used up, on each of `processes`.

    Scores are higher-is-better. window: sums since the last line of the log. skipped: steps skipped in a row.
    """

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
    processes: int = 1
    skipped: int = 0
    window: dict[str, float] = field(default_factory=dict)

    def ending(self) -> dict[str, Any]:
        """What the log says of the end."""
        return {"reason": self.reason, "best_step": self.best_step, "seconds": round(self.seconds, 3)}

    def reopen(self, training: TrainingConfig) -> bool:
        """Has training ended, and does its configuration by now ask for more? Then it has not ended."""
        without_gain = self.validations_without_gain
        reopened = self.finished and training.asks_for_more(self.step, self.epoch, without_gain)
        if reopened:
            self.finished, self.reason = False, ""
        return reopened

    def adopt(self, processes: int) -> None:
        """Go on with another number of processes: at the same place of the epoch, as nearly as their batches allow."""
        self.batch, self.processes = self.batch * self.processes // processes, processes


def save_state(
    folder: Path, system: System, optimizer: torch.optim.Optimizer, progress: Progress, random: dict[str, Tensor]
) -> None:
    """Write one state and drop older ones; random: what `random_states` gave on all processes together.

    Raises OSError that names the file, where the disk is full say; earlier states stay, and nothing half-written.
    """
    for rest in folder.glob("*.part"):  # of a process that was killed here: it may fill the disk that we need
        shutil.rmtree(rest, ignore_errors=True)
    final = folder / f"step-{progress.step:06d}"
    if (final / "progress.json").is_file():  # no update lies between: only what is known of this step has grown
        if _progress(final).processes != progress.processes:  # each has a random state of its own
            _write_optimizer(final, optimizer, random)
        _write_progress(final, progress)
        return
    part = folder / f"{final.name}.part"
    try:
        write_weights(part / WEIGHTS, system)
        _write_optimizer(part, optimizer, random)
        _write_progress(part, progress)
        _drop_states(folder, but=KEPT_STATES - 1)
        os.replace(part, final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _drop_states(folder: Path, but: int) -> None:
    """Remove all but the newest whole states; each first leaves in one move, for half a state must not look whole."""
    kept = _whole(folder)[-but:]
    try:
        for state in _states(folder):
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
    steps = sorted(int(name) for name in names if name.isdigit() and int(name) <= step)
    for old in steps[: max(0, len(steps) - training.keep_last)]:
        if old % regular:
            (folder / f"step-{old:06d}.safetensors").unlink(missing_ok=True)


def _write_optimizer(folder: Path, optimizer: torch.optim.Optimizer, random: dict[str, Tensor]) -> None:
    with whole_file(folder / "optimizer.pt") as path, path.open("wb") as file:
        torch.save({"optimizer": optimizer.state_dict(), "random": random}, file)


def _write_progress(folder: Path, progress: Progress) -> None:
    with whole_file(folder / "progress.json") as path:
        path.write_text(json.dumps(asdict(progress)), encoding="utf-8")


def _progress(state: Path) -> Progress:
    return Progress(**read_json(state / "progress.json", RECORD))


def _states(folder: Path) -> list[Path]:
    """All states by step, not by name: step-1000000 is later than step-999999."""
    names = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdigit()]
    return sorted(names, key=lambda path: int(path.name.removeprefix("step-")))


def _whole(folder: Path) -> list[Path]:
    return [path for path in _states(folder) if (path / "progress.json").is_file()]


def latest_state(folder: Path) -> Path | None:
    """The newest whole state."""
    whole = _whole(folder)
    return whole[-1] if whole else None


def read_progress(folder: Path) -> Progress | None:
    """Where a run's training stands, or None if it has no state."""
    state = latest_state(folder)
    return None if state is None else _progress(state)


def load_state(path: Path, system: System, optimizer: torch.optim.Optimizer, rank: int = 0) -> Progress:
    """Put weights, optimiser and the random state of process `rank` back as they were; returns the position.

    Raises CheckpointError where a file of the state cannot be read, or fits another number of trained tensors.
    """
    load_weights(path / WEIGHTS, system)
    try:
        with open_file(path / "optimizer.pt", TENSORS) as file:
            stored = torch.load(file, map_location="cpu", weights_only=True)
        progress = _progress(path)
    except (OSError, RuntimeError, EOFError, UnpicklingError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path}: this state cannot be read ({error}); move the folder away to go on from the state before it"
        ) from error
    # Betas and weight decay are the configuration's, which may have been changed since; the rate is set at every step.
    own = optimizer.state_dict()["param_groups"]
    counts = [sum(len(group["params"]) for group in groups) for groups in (stored["optimizer"]["param_groups"], own)]
    if counts[0] != counts[1]:
        raise CheckpointError(
            f"{path}: {counts[0]} tensors were trained here and now {counts[1]} are, by other settings or an older "
            "version, so the optimiser's numbers are of others; begin from its weights: init_from"
        )
    optimizer.load_state_dict({**stored["optimizer"], "param_groups": own})
    if rank < progress.processes:
        # Cloned: torch reads a generator's state from where the storage begins, not from where the row does.
        torch.set_rng_state(torch.atleast_2d(stored["random"]["cpu"])[rank].clone())
        if torch.cuda.is_available() and "cuda" in stored["random"]:
            torch.cuda.set_rng_state(stored["random"]["cuda"][rank].clone())
    return progress


def random_states(accelerator: Accelerator) -> dict[str, Tensor]:
    """The random states of all processes, by kind of device: [processes, bytes], the same on every process."""
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return {kind: accelerator.gather(state[None].to(accelerator.device)).cpu() for kind, state in states.items()}
