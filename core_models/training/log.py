"""The training log `training.jsonl`, one event per line, optionally mirrored in TensorBoard."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core_models.checkpoint import writing
from core_models.config import CONFIG, TRAINING_LOG
from core_models.files.run_files import LOG, open_file, open_to_write
from core_models.settings import ConfigError
from core_models.training.events import event_of
from core_models.training.gradient_check import Update


class TrainingLog:
    """Appends events; when opened at a step, it drops later events of an interrupted process.

    going_on: a finished training continues, so a logged end is dropped too. ended: the end of training is logged.
    Raises OSError that names the file if an event cannot be written.
    """

    def __init__(self, folder: Path, step: int, tensorboard: bool = False, going_on: bool = False) -> None:
        self.path = folder / TRAINING_LOG
        self._file = open_to_write(self.path, append=True)
        self.ended = False
        whole = self._keep(step, going_on)
        if whole < self.path.stat().st_size:
            os.truncate(
                self._file.fileno(), whole
            )  # in place: needs no room on a full disk, and no moment without a log
        self._board = _open_board(folder, step) if tensorboard else None

    def _keep(self, step: int, going_on: bool) -> int:
        """The number of bytes up to the last complete event not later than `step`, without an end when going on."""
        whole = position = 0
        with open_file(self.path, LOG) as lines:
            for line in lines:
                position += len(line)
                event = event_of(line)
                if event is None or not line.endswith(b"\n") or event["step"] > step:
                    continue
                if event.get("event") != "end":
                    whole = position
                elif not going_on:
                    whole, self.ended = position, True
        return whole

    def write(self, event: str, step: int, **values: Any) -> None:
        record = {"event": event, "step": step, "time": round(time.time(), 3), **values}
        line = (json.dumps(record) + "\n").encode()
        with writing(self.path):
            while line:
                line = line[self._file.write(line) :]
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


class Window:
    """Means per token, rewards and speed since the last line of the log.

    `sums` is stored in the state, so that a line whose steps span an interruption is the same as without it.
    """

    def __init__(self, sums: dict[str, float]) -> None:
        self.sums = sums
        self._restart()

    def _restart(self) -> None:
        self._tokens, self._began = 0.0, time.perf_counter()  # of this process only

    def add(self, update: Update) -> None:
        losses = {f"{name}_loss": value for name, value in update.losses.items()}
        counts = {"tokens": update.tokens, "norm": update.gradient_norm, "steps": 1}
        for name, value in {**losses, **update.rewards, **counts}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self._tokens += update.tokens

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done inside, such as a validation, takes no time of the speed."""
        began = time.perf_counter()
        yield
        self._began += time.perf_counter() - began

    def take(self) -> dict[str, float]:
        """The means of the steps since the last call, which are then reset; empty if all steps were skipped."""
        sums, tokens, began = dict(self.sums), self._tokens, self._began
        self.sums.clear()
        self._restart()
        if not sums:
            return {}
        total, steps, norm = sums.pop("tokens"), sums.pop("steps"), sums.pop("norm")
        return {
            **{name: value / (total if name.endswith("_loss") else steps) for name, value in sums.items()},
            "gradient_norm": norm / steps,
            "tokens_per_second": tokens / (time.perf_counter() - began),
        }


def _open_board(folder: Path, step: int) -> Any:
    """A writer that hides what an earlier one wrote of later steps."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "training.tensorboard: TensorBoard is not installed; install it (pip install 'nmt-workbench[tensorboard]') "
            f"or set tensorboard: false in {folder / CONFIG}, then go on: workbench resume {folder}"
        ) from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
