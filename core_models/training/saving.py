"""The files of a step, written while a GPU trains on.

On a GPU all numbers are first copied to page-locked memory of the host, after the step's kernels and before those of
the next step, so that neither host nor GPU waits for the disk. One thread then writes them. On a CPU they are written
at once: that takes less than 1 % of a training, and most of it is work of the processor that trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core_models.checkpoint import SharedWeights
from core_models.config import WEIGHTS, TrainingConfig
from core_models.training.progress import Progress
from core_models.training.state import keep_checkpoint, save_state


@dataclass(frozen=True)
class Saved:
    """What is saved of a step; optimizer: its state_dict; random: by device type, [processes, bytes]."""

    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    random: Mapping[str, Tensor]
    progress: Progress

    def write(self, run: Path, training: TrainingConfig, best: bool, checkpoint: bool) -> None:
        """Write the run's weights if they are the best, a checkpoint if it is due and, last, the state.

        The weights are written once: the three are links to one file. Raises OSError that names the file.
        """
        shared = SharedWeights(self.weights)
        if best:
            shared.write(run / WEIGHTS)
        if checkpoint:
            keep_checkpoint(run / "checkpoints", shared, self.progress.step, training)
        save_state(run / "state", shared, self.optimizer, self.progress, self.random)


class Saving:
    """Writes what is saved, one step after the other, in the background if it is on a GPU."""

    def __init__(self, device: torch.device) -> None:
        self.in_background = device.type == "cuda"
        self._pool = ThreadPoolExecutor(1, "saving") if self.in_background else None
        self._copies: dict[tuple[object, ...], Tensor] = {}
        self._writing: Future[None] | None = None
        self._problem: OSError | None = None

    def begin(self, saved: Saved, write: Callable[[Saved], None]) -> None:
        """Call write(saved), with the numbers of now; whether it failed is the next `problem`."""
        assert self._writing is None, "the files before are not known to be whole"
        if self._pool is None:
            try:
                write(saved)
            except OSError as error:
                self._problem = error
            return
        saved = replace(
            saved,
            weights=self._on_host(saved.weights, ("weights",)),
            optimizer=self._on_host(saved.optimizer, ("optimizer",)),
            progress=saved.progress.model_copy(deep=True),
        )
        copied = torch.cuda.Event()
        copied.record()
        self._writing = self._pool.submit(_write_copied, copied, saved, write)

    def wait(self) -> None:
        """Wait until nothing is being written."""
        if self._writing is None:
            return
        try:
            self._writing.result()
        except OSError as error:
            self._problem = error
        self._writing = None

    def problem(self) -> OSError | None:
        """Wait for what is being written; returns, once, why it could not be."""
        self.wait()
        problem, self._problem = self._problem, None
        return problem

    def close(self) -> OSError | None:
        """End the thread when it has written; returns the problem that nobody has asked for."""
        if self._pool is not None:
            self._pool.shutdown()
        return self.problem()

    def _on_host(self, value: Any, place: tuple[object, ...]) -> Any:
        """Nested mappings and lists with their tensors copied, whole once an event is over that is recorded after this.

        The memory is taken once and used again by the next call.
        """
        if isinstance(value, Mapping):
            return {name: self._on_host(each, (*place, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self._on_host(each, (*place, number)) for number, each in enumerate(value)]
        if not isinstance(value, Tensor):
            return value
        if place not in self._copies:
            self._copies[place] = torch.empty(value.shape, dtype=value.dtype).pin_memory()
        return self._copies[place].copy_(value.detach(), non_blocking=True)


def _write_copied(copied: torch.cuda.Event, saved: Saved, write: Callable[[Saved], None]) -> None:
    copied.synchronize()
    write(saved)
