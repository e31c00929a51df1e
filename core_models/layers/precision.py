"""Computation in float32 or better, whatever the type of the weights and autocast."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")


def widened(dtype: torch.dtype) -> torch.dtype:
    """The wider of float32 and this type."""
    return torch.promote_types(dtype, torch.float32)


def wide(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorator: call with tensors of float32 or better, without autocast."""

    def enlarged(value: Any) -> Any:
        return value.to(widened(value.dtype)) if isinstance(value, Tensor) and value.is_floating_point() else value

    @wraps(function)
    def call(first: Tensor, *rest: Any, **named: Any) -> Result:
        with torch.autocast(first.device.type, enabled=False):
            return function(
                enlarged(first), *map(enlarged, rest), **{key: enlarged(value) for key, value in named.items()}
            )

    return call
