"""The lock for training a run, RUN/.training.lock: held by the main process, whose name is in the file.

The operating system releases it when that process ends. Reading a run needs no lock.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from filelock import FileLock, Timeout

from core_models.files.run_files import RECORD, open_to_write, read_bytes
from core_models.training.loop import TrainingError

LOCK = ".training.lock"


@contextmanager
def training_lock(folder: Path, processes: PartialState) -> Iterator[None]:
    """Hold the training lock of a run; if another training holds it, every process raises TrainingError."""
    lock, refused = FileLock(folder / LOCK), False
    try:
        if processes.is_main_process:
            try:
                lock.acquire(blocking=False)
                _note(folder, f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%F %T')},")
            except Timeout:
                refused = True
        refusals = reduce(torch.tensor(float(refused), device=processes.device))
        if refusals > 0:
            raise TrainingError(
                f"{folder}: {_holder(folder)} is training this run, and two trainings would mix their files; wait "
                f"until it has ended or stop it, then go on: workbench resume {folder}"
            )
        yield
    finally:
        if lock.is_locked:
            _note(folder, "")
        lock.release()


def _note(folder: Path, holder: str) -> None:
    # On a full disk, or if locked files cannot be written, the holder stays unnamed.
    with suppress(OSError), open_to_write(folder / LOCK) as file:
        file.write(holder.encode())


def _holder(folder: Path) -> str:
    with suppress(OSError):
        return read_bytes(folder / LOCK, RECORD).decode(errors="replace") or "another process"
    return "another process"
