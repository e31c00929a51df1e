"""Additive energies, sum_d w_d tanh(query_d + key_d) for every query and key, with bounded memory.

The volume tanh(query + key) [rows, T, I, D] dominates the cost of guided routing and of additive attention. It is
computed in chunks, reduced at once and recomputed in the backward pass, so that memory is bounded at any length. Its
numbers are taken as tanh(x) = 2 s - 1, s = sigmoid(2 x): on a CPU PyTorch's sigmoid takes a sixth of its tanh's time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from core_models.layers.precision import wide

# Numbers of the volume in memory at once; on a CPU they stay in the cache between passes.
CACHED_NUMBERS, HELD_NUMBERS = 1 << 18, 1 << 27


@wide
def additive_energies(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Energies w . tanh(query + key): query [..., T, D], key [..., I, D], weight [..., D] -> [..., T, I].

    Query and key have equal leading axes, to which those of weight broadcast (Bahdanau 2015; Zheng 2019, Eq. 7).
    """
    leading = query.shape[:-2]
    flat = (query.flatten(0, -3), key.flatten(0, -3), weight.expand(*leading, -1).reshape(-1, weight.shape[-1]))
    return _Energies.apply(*flat).unflatten(0, leading)


class _Energies(torch.autograd.Function):
    """Energies of rows: [R, T, D], [R, I, D], [R, D] -> [R, T, I]."""

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, weight)
        energies = query.new_empty(*query.shape[:2], key.shape[1])
        total = weight.sum(1)[:, None, None]
        for rows, steps, volume in _chunks(query, key):
            dotted = torch.bmm(volume.flatten(1, 2), weight[rows, :, None]).view(volume.shape[:-1])
            energies[rows, steps] = torch.add(-total[rows], dotted, alpha=2)
        return energies

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, weight = ctx.saved_tensors
        grad_query, grad_key, grad_weight = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(weight)
        for rows, steps, volume in _chunks(query, key):
            grad_part = grad[rows, steps]  # [n, t, I]
            grad_weight[rows] += torch.bmm(grad_part.flatten(1)[:, None], volume.flatten(1, 2))[:, 0]
            slope = torch.addcmul(volume, volume, volume, value=-1, out=volume).mul_(grad_part[..., None])
            grad_query[rows, steps] = slope.sum(2)
            grad_key[rows] += slope.sum(1)
        scale = 4 * weight[:, None]  # tanh' = 4 s (1 - s)
        return grad_query * scale, grad_key * scale, 2 * grad_weight - grad.sum((1, 2))[:, None]


def _chunks(query: Tensor, key: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield rows, query positions and their sigmoid(2 (query + key)) [n, t, I, D], which reuses one buffer."""
    held = CACHED_NUMBERS if query.device.type == "cpu" else HELD_NUMBERS
    rows, positions, width = query.shape
    steps = max(1, min(positions, held // max(1, key.shape[1] * width)))
    n_rows = max(1, min(rows, held // max(1, steps * key.shape[1] * width))) if steps == positions else 1
    doubled = 2 * query
    buffer = query.new_empty(n_rows * steps * key.shape[1] * width)
    for first in range(0, rows, n_rows):
        for start in range(0, positions, steps):
            part = slice(first, first + n_rows), slice(start, start + steps)
            left, right = doubled[part][:, :, None], key[part[0]][:, None]
            shape = torch.broadcast_shapes(left.shape, right.shape)
            volume = torch.add(left, right, alpha=2, out=buffer[: math.prod(shape)].view(shape)).sigmoid_()
            yield *part, volume
