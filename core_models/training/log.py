"""`training.jsonl`: one event a line, and its mirror in TensorBoard if that is installed and asked for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log; a last line that was cut off is left out."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(event, dict):
            yield event


class TrainingLog:
    """Appends events; opened at a step, it first drops what was logged after it by a process that was interrupted."""

    def __init__(self, folder: Path, step: int, tensorboard: bool = False) -> None:
        self.path = folder / "training.jsonl"
        kept = [event for event in read_events(self.path) if event.get("step", 0) <= step]
        temporary = self.path.with_name("training.jsonl.part")
        temporary.write_text("".join(json.dumps(event) + "\n" for event in kept), encoding="utf-8")
        os.replace(temporary, self.path)
        self._file = self.path.open("a", encoding="utf-8", buffering=1)
        self._board = _open_board(folder) if tensorboard else None

    def write(self, event: str, step: int, **values: Any) -> None:
        record = {"event": event, "step": step, "time": round(time.time(), 3), **values}
        self._file.write(json.dumps(record) + "\n")
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _open_board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError("training.tensorboard needs the extra: pip install nmt-workbench[tensorboard]") from None
    return SummaryWriter(str(folder / "tensorboard"))
