"""Device names, checked before any work begins."""

from __future__ import annotations

import torch

from core_models.settings import ConfigError


def resolved(device: str) -> str:
    """Resolve "auto" to CUDA if available, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(device: str) -> None:
    """Raise ConfigError, with the available devices, for another device than a CPU or a GPU that PyTorch can use."""
    try:
        known = torch.empty(1, device=device).device.type in ("cpu", "cuda")
    except (RuntimeError, AssertionError, NotImplementedError):  # AssertionError: PyTorch was built without CUDA
        known = False
    if not known:
        raise ConfigError(f"device {device!r}: PyTorch finds no such device here; {_available()}")


def usable(device: str) -> str:
    """The device, "auto" resolved; raises ConfigError as `check_device` does."""
    device = resolved(device)
    check_device(device)
    return device


def _available() -> str:
    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return f"use {' or '.join(['cpu', *cuda])}" + ("" if cuda else " (there is no CUDA device)")
