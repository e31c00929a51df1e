"""What is never computed below float32, whatever the weights and autocast are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")


def widened(dtype: torch.dtype) -> torch.dtype:
    """float32, or the type itself where that is wider."""
    return torch.promote_types(dtype, torch.float32)


def wide(function: Callable[..., Result]) -> Callable[..., Result]:
    """Calls with tensors of float32 or better, and keeps autocast out."""

    def enlarged(value: Any) -> Any:
        return value.to(widened(value.dtype)) if isinstance(value, Tensor) and value.is_floating_point() else value

    @wraps(function)
    def call(first: Tensor, *rest: Any, **named: Any) -> Result:
        with torch.autocast(first.device.type, enabled=False):
            return function(
                enlarged(first), *map(enlarged, rest), **{key: enlarged(value) for key, value in named.items()}
            )

    return call
