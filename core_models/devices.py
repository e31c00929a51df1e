"""Which devices there are: a name is tried before any work begins, so that a wrong one costs nothing.

Knows PyTorch's devices and nothing of what runs on them.
"""

from __future__ import annotations

import torch

from core_models.settings import ConfigError


def resolved(device: str) -> str:
    """The device that "auto" stands for here: CUDA where there is some, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(device: str) -> None:
    """Raises ConfigError, with what there is, for a device name that PyTorch does not know or cannot use here."""
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # AssertionError: PyTorch was built without CUDA
        raise ConfigError(f"device {device!r}: PyTorch finds no such device here; {_found()}") from None


def _found() -> str:
    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return f"use {' or '.join(['cpu', *cuda])}" + ("" if cuda else " (there is no CUDA device)")
