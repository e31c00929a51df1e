"""Additive energies, sum_d w_d tanh(query_d + key_d) for every query and key, without their volume in memory.

The volume [rows, T, I, D] is the whole cost of guided routing and of attention by a small network. It is made in
chunks, reduced at once and made a second time in the backward pass, so that memory stays bounded at any length. Knows
neither routing nor words.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from core_models.routing import wide

# Numbers of the volume that are held at once; on a CPU they stay in the cache from one pass over them to the next.
CACHED_NUMBERS, HELD_NUMBERS = 1 << 18, 1 << 27
# Up to here exp(2 x) and its inverse are numbers of float32, and no key or query needs the plain form.
FACTORED_UP_TO = 43.0


@wide
def additive_energies(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """w . tanh(query + key): query [..., T, D], key [..., I, D], weight [..., D] -> [..., T, I].

    The leading axes of query and key are alike, those of weight broadcast to them (Bahdanau 2015; Zheng 2019, Eq. 7).
    """
    leading = query.shape[:-2]
    flat = (query.flatten(0, -3), key.flatten(0, -3), weight.expand(*leading, -1).reshape(-1, weight.shape[-1]))
    return _Energies.apply(*flat).unflatten(0, leading)


class _Energies(torch.autograd.Function):
    """By tanh x = 1 - 2 r with r = 1 / (1 + exp(2 x)), of which the slope is 4 r (1 - r)."""

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, weight)
        left, right, factored = _factors(query, key)
        energies = query.new_empty(*query.shape[:2], key.shape[1])
        total = weight.sum(-1)[:, None, None]
        for rows, steps in _chunks(query, key):
            rest = _rest(left[rows, steps], right[rows], factored)  # [n, t, I, D]
            dotted = torch.bmm(rest.flatten(1, 2), weight[rows, :, None])
            torch.sub(total[rows], dotted.view(rest.shape[:-1]), alpha=2, out=energies[rows, steps])
        return energies

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, weight = ctx.saved_tensors
        left, right, factored = _factors(query, key)
        grad_query, grad_key = torch.empty_like(query), torch.zeros_like(key)
        dotted = torch.zeros_like(weight)
        for rows, steps in _chunks(query, key):
            rest, given = _rest(left[rows, steps], right[rows], factored), grad[rows, steps]  # [n, t, I, D], [n, t, I]
            dotted[rows] += torch.bmm(given.flatten(1)[:, None], rest.flatten(1, 2))[:, 0]
            slope = torch.addcmul(rest, rest, rest, value=-1, out=rest).mul_(given[..., None])
            grad_query[rows, steps] = slope.sum(2)
            grad_key[rows] += slope.sum(1)
        steep = 4 * weight[:, None]
        return grad_query * steep, grad_key * steep, grad.sum((1, 2))[:, None] - 2 * dotted


def _factors(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, bool]:
    """exp(2 query) and exp(2 key), whose products are all that is needed; or the two themselves where those overflow.

    A product in place of a tanh is what makes the volume cheap on a CPU; elsewhere a tanh costs nothing.
    """
    if query.device.type == "cpu" and query.numel() and key.numel():
        largest = max(float(query.abs().max()), float(key.abs().max()))
        if largest < FACTORED_UP_TO:
            return (2 * query).exp(), (2 * key).exp(), True
    return query, key, False


def _rest(left: Tensor, right: Tensor, factored: bool) -> Tensor:
    """r of every pair: [n, t, D], [n, I, D] -> [n, t, I, D]."""
    left, right = left[:, :, None], right[:, None]
    if factored:
        return torch.addcmul(left.new_ones(()), left, right).reciprocal_()
    return torch.add(left, right).mul_(-2).sigmoid_()


def _chunks(query: Tensor, key: Tensor) -> Iterator[tuple[slice, slice]]:
    """Rows and query positions whose volume is held at once."""
    held = CACHED_NUMBERS if query.device.type == "cpu" else HELD_NUMBERS
    rows, positions, width = query.shape
    steps = max(1, min(positions, held // max(1, key.shape[1] * width)))
    together = max(1, held // max(1, steps * key.shape[1] * width)) if steps == positions else 1
    for first in range(0, rows, together):
        for start in range(0, positions, steps):
            yield slice(first, first + together), slice(start, start + steps)
