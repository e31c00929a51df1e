"""Gradient checkpointing in chunks of positions.

Evaluates a function on chunks of positions and recomputes each chunk in the backward pass, so that large intermediates,
as in routing, exist for one chunk only. On a CPU they stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Numbers of the input tensors in one chunk.
CACHED_NUMBERS, HELD_NUMBERS = 1 << 17, 1 << 26


def in_pieces(function: Callable[..., Tensor], inputs: Sequence[Tensor], fixed: Sequence[Tensor] = ()) -> Tensor:
    """Evaluate function(*inputs, *fixed) -> [P, ...] in chunks; inputs are [P, ...], fixed is shared by all positions.

    The function must treat positions independently and give the same result when called again.
    """
    return _Pieces.apply(function, len(inputs), *inputs, *fixed)


class _Pieces(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function: Callable[..., Tensor], count: int, *tensors: Tensor) -> Tensor:
        ctx.function, ctx.count = function, count
        ctx.save_for_backward(*tensors)
        inputs, fixed = tensors[:count], tensors[count:]
        return torch.cat([function(*(tensor[piece] for tensor in inputs), *fixed) for piece in _pieces(inputs)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors, needs_grad, count = ctx.saved_tensors, ctx.needs_input_grad[2:], ctx.count
        totals = [
            torch.zeros_like(tensor) if needs else None for tensor, needs in zip(tensors, needs_grad, strict=True)
        ]
        for piece in _pieces(tensors[:count]):
            parts = [tensor[piece] if number < count else tensor for number, tensor in enumerate(tensors)]
            parts = [tensor.detach().requires_grad_(needs) for tensor, needs in zip(parts, needs_grad, strict=True)]
            with torch.enable_grad():
                output = ctx.function(*parts)
            variables = [tensor for tensor in parts if tensor.requires_grad]
            gradients = iter(torch.autograd.grad(output, variables, grad[piece], materialize_grads=True))
            for number, total in enumerate(totals):
                if total is None:
                    continue
                if number < count:
                    total[piece] = next(gradients)
                else:
                    total += next(gradients)
        return None, None, *totals


def _pieces(inputs: Sequence[Tensor]) -> Iterator[slice]:
    held = CACHED_NUMBERS if inputs[0].device.type == "cpu" else HELD_NUMBERS
    positions = len(inputs[0])
    size = max(1, held * positions // max(1, sum(tensor.numel() for tensor in inputs)))
    return (slice(start, start + size) for start in range(0, max(1, positions), size))
