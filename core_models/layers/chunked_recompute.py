"""A function of positions, worked out for some of them at a time, and a second time for its gradients.

What a function makes on its way is often many times what it is given, as in routing: here that lives for one piece
alone, and on a CPU in the cache, where all at once would go to memory and back at every operation. Knows no function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Numbers of the given tensors that are worked on at once.
CACHED_NUMBERS, HELD_NUMBERS = 1 << 17, 1 << 26


def in_pieces(function: Callable[..., Tensor], given: Sequence[Tensor], fixed: Sequence[Tensor] = ()) -> Tensor:
    """function(*given, *fixed) -> [P, ...], where given are [P, ...] and fixed the same for all positions.

    The function must treat every position by itself, and do the same when it is called again.
    """
    return _Pieces.apply(function, len(given), *given, *fixed)


class _Pieces(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function: Callable[..., Tensor], count: int, *tensors: Tensor) -> Tensor:
        ctx.function, ctx.count = function, count
        ctx.save_for_backward(*tensors)
        given, fixed = tensors[:count], tensors[count:]
        return torch.cat([function(*(one[piece] for one in given), *fixed) for piece in _pieces(given)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors, wanted, count = ctx.saved_tensors, ctx.needs_input_grad[2:], ctx.count
        found = [torch.zeros_like(one) if needed else None for one, needed in zip(tensors, wanted, strict=True)]
        for piece in _pieces(tensors[:count]):
            parts = [one[piece] if number < count else one for number, one in enumerate(tensors)]
            parts = [one.detach().requires_grad_(needed) for one, needed in zip(parts, wanted, strict=True)]
            with torch.enable_grad():
                made = ctx.function(*parts)
            asked = [one for one in parts if one.requires_grad]
            gradients = iter(torch.autograd.grad(made, asked, grad[piece], materialize_grads=True))
            for number, total in enumerate(found):
                if total is None:
                    continue
                if number < count:
                    total[piece] = next(gradients)
                else:
                    total += next(gradients)
        return None, None, *found


def _pieces(given: Sequence[Tensor]) -> Iterator[slice]:
    held = CACHED_NUMBERS if given[0].device.type == "cpu" else HELD_NUMBERS
    positions = len(given[0])
    together = max(1, held * positions // max(1, sum(one.numel() for one in given)))
    return (slice(start, start + together) for start in range(0, max(1, positions), together))
