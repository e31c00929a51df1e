"""Linear maps in a recurrence whose weight gradients are computed after it, in one product over all positions.

A plain recurrence computes and accumulates the gradient of a weight [out, in] at every position, with memory traffic of
the weight's size each time. Here every position stores its input, autograd stacks the gradients of the outputs, and one
product of both gives the gradient. Values and gradients equal those of the plain maps.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def images(maps: Sequence[nn.Module], x: Tensor) -> tuple[Tensor, ...]:
    """The images of x [..., in] under linear maps, one by one: [..., out] each."""
    return tuple(linear(x) for linear in maps)


class DeferredProducts:
    """The linear maps of one pass over `positions` positions, each used at least once per position.

    Maps of the same vector are joined to one product.
    """

    def __init__(self, positions: int) -> None:
        self.positions = positions
        self._maps: dict[tuple[int, ...], _DeferredMap] = {}

    def __call__(self, maps: Sequence[nn.Linear], x: Tensor) -> tuple[Tensor, ...]:
        """The images of x [..., in] under every map, [..., out] each; without gradients computed directly."""
        if not torch.is_grad_enabled():
            return images(maps, x)
        key = tuple(map(id, maps))
        if key not in self._maps:
            self._maps[key] = _DeferredMap(maps, self.positions)
        return self._maps[key](x)


class _DeferredMap:
    """Linear maps of the same vector, applied repeatedly to vectors of one shape."""

    def __init__(self, maps: Sequence[nn.Linear], positions: int) -> None:
        self.positions = positions
        self.widths = [linear.out_features for linear in maps]
        self.weight = maps[0].weight if len(maps) == 1 else torch.cat([linear.weight for linear in maps])
        biases = [
            linear.weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias for linear in maps
        ]
        self.bias = biases[0] if len(maps) == 1 else torch.cat(biases)
        self.late = self.weight.requires_grad
        self.fixed = self._lowered(self.weight.detach()).t()
        self._seeds: list[Tensor] = []
        self._inputs: list[Tensor] = []

    @staticmethod
    def _lowered(weight: Tensor) -> Tensor:
        """The weight in autocast's type, converted once for all positions."""
        device = weight.device.type
        return weight.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else weight

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        rows = x.flatten(0, -2)
        if self.late:
            if not self._seeds:
                self._inputs = []
                shape = self.positions, len(rows)
                self._seeds = list(_Seeds.apply(self.weight, self.bias, self._inputs, *shape).unbind(0))[::-1]
            image = torch.addmm(self._seeds.pop(), rows, self.fixed)
            self._inputs.append(rows.detach())
        else:
            image = torch.addmm(self.bias.to(self.fixed.dtype), rows, self.fixed)
        return image.view(*x.shape[:-1], -1).split(self.widths, dim=-1)


class _Seeds(torch.autograd.Function):
    """The bias per position [positions, rows, out], to which each adds its product; collects the gradients."""

    @staticmethod
    def forward(ctx, weight: Tensor, bias: Tensor, inputs: list[Tensor], positions: int, rows: int) -> Tensor:
        ctx.inputs = inputs  # filled during the recurrence
        ctx.dtype = weight.dtype
        return bias.clone().expand(positions, rows, -1)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
        used = grad[: len(ctx.inputs)].flatten(0, 1)
        x = torch.cat(ctx.inputs)
        weight_grad = used.to(x.dtype).t() @ x if ctx.needs_input_grad[0] else None
        bias_grad = used.sum(0) if ctx.needs_input_grad[1] else None
        return None if weight_grad is None else weight_grad.to(ctx.dtype), bias_grad, None, None, None


LATE = _Seeds.__name__  # the profiler's name of the function that collects gradients until the recurrence ends
