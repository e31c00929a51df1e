"""Routing of words to capsules: guided by a query (Yang 2019, Algorithm 1), or by agreement alone (Sabour 2017).

The transforms are shared by all words, so votes are never computed: with one matrix W_j per capsule,
sum_i w_ij (u_i W_j) = (sum_i w_ij u_i) W_j, and (u_i W_j) . v_j = u_i . (W_j v_j). Computed in float32 or better.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from core_models.layers.precision import wide
from core_models.routing.algorithms import Routing, squash

Correlation = Literal["pearson", "eq7"]
FLOOR = 1e-8  # added under the root of a length, so that a constant vector has a finite gradient


@dataclass(frozen=True)
class QueryRouting(Routing):
    """The result of query-guided routing.

    correlations [iterations, B, n, m]: as used in each iteration; queries [iterations + 1, B, m, D]: before each
    iteration and after the last.
    """

    correlations: Tensor = field(kw_only=True)
    queries: Tensor = field(kw_only=True)


@wide
def correlations(first: Tensor, second: Tensor, kind: Correlation = "pearson") -> Tensor:
    """Correlation of every vector of `first` [..., n, D] with every vector of `second` [..., m, D]: [..., n, m].

    `eq7` is Equation 7 of Yang 2019 as printed: its denominator has the lengths of the vectors before centering, so its
    absolute value is at most that of the Pearson correlation. The correlation of a constant vector is 0.
    """
    return _scaled(first, kind) @ _scaled(second, kind).transpose(-1, -2)


def _scaled(vectors: Tensor, kind: Correlation) -> Tensor:
    """Center vectors, and divide by the length of the centered (pearson) or of the original vector (eq7)."""
    centered = vectors - vectors.mean(-1, keepdim=True)
    measured = centered if kind == "pearson" else vectors
    return centered * torch.rsqrt(measured.square().sum(-1, keepdim=True) + FLOOR)


@wide
def query_guided_routing(
    inputs: Tensor,
    query: Tensor,
    transforms: Tensor,
    mask: Tensor,
    iterations: int = 4,
    correlation: Correlation = "pearson",
    groups: Tensor | None = None,
    detach: bool = False,
) -> QueryRouting:
    """Route words to capsules with weights coupling + correlation with the query (Yang 2019, Algorithm 1).

    inputs [B, n, D] and mask [B, n] of words, query [B, D], transforms [m, D, D] (v = u W) -> capsules [B, m, D];
    history: couplings c [B, n, m] of every iteration, softmax over capsules, uniform in the first, zero for padding;
    correlations p: their tanh, in the first iteration with the query itself. c + p may be negative.
    groups [B, n]: with transforms [G, m, D, D] the words of group g (of a distance) have their own matrices.
    detach: gradients pass through the last iteration only.
    """
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: the first one is uniform, so there is at least one")
    real = mask[..., None].to(inputs.dtype)  # [B, n, 1]
    matrices = transforms if groups is not None else transforms[None]
    members = _members(groups, len(matrices), real)  # [B, G, n, 1]
    scaled = _scaled(inputs, correlation)
    capsule_count = matrices.shape[1]
    queries = [query[:, None].expand(-1, capsule_count, -1)]  # [B, m, D]
    logits = inputs.new_zeros(*inputs.shape[:2], capsule_count)
    couplings, correlated = [], []
    for number in range(iterations):
        last = number == iterations - 1
        with torch.set_grad_enabled(torch.is_grad_enabled() and (last or not detach)):
            coupling = torch.softmax(logits, dim=-1) * real
            aligned = torch.tanh(scaled @ _scaled(queries[-1], correlation).transpose(-1, -2)) * real  # [B, n, m]
            capsules = squash(_gathered(coupling + aligned, inputs, matrices, members))
            couplings.append(coupling)
            correlated.append(aligned)
            queries.append((queries[-1] + capsules) / 2)
            if not last:  # the last update would have no effect
                logits = logits + aligned * _answers(capsules, inputs, matrices, members)
    return QueryRouting(capsules, tuple(couplings), correlations=torch.stack(correlated), queries=torch.stack(queries))


@wide
def shared_dynamic_routing(inputs: Tensor, transforms: Tensor, mask: Tensor, iterations: int = 4) -> Routing:
    """Plain dynamic routing (Sabour 2017, Procedure 1) with matrices shared by all inputs.

    inputs [B, n, D], transforms [m, D, D], mask [B, n] -> capsules [B, m, D], couplings [B, n, m] of every iteration.
    """
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: the first one is uniform, so there is at least one")
    real = mask[..., None].to(inputs.dtype)
    matrices, members = transforms[None], real[:, None]
    logits = inputs.new_zeros(*inputs.shape[:2], len(transforms))
    couplings = []
    for number in range(iterations):
        couplings.append(torch.softmax(logits, dim=-1) * real)
        capsules = squash(_gathered(couplings[-1], inputs, matrices, members))
        if number < iterations - 1:
            logits = logits + _answers(capsules, inputs, matrices, members)
    return Routing(capsules, tuple(couplings))


def _members(groups: Tensor | None, count: int, real: Tensor) -> Tensor:
    """Membership of words in groups, [B, G, n, 1]; without groups all real words are in one."""
    if groups is None:
        return real[:, None]
    numbers = torch.arange(count, device=groups.device)[:, None]
    return (groups[:, None] == numbers)[..., None].to(real.dtype) * real[:, None]


def _gathered(weights: Tensor, inputs: Tensor, matrices: Tensor, members: Tensor) -> Tensor:
    """Weighted votes sum_i w_ij (u_i W_j): weights [B, n, m], inputs [B, n, D], matrices [G, m, D, D] -> [B, m, D]."""
    shares = (weights[:, None] * members).transpose(-1, -2)  # [B, G, m, n]
    return torch.einsum("bgmd,gmde->bme", shares @ inputs[:, None], matrices)


def _answers(capsules: Tensor, inputs: Tensor, matrices: Tensor, members: Tensor) -> Tensor:
    """Agreement (u_i W_j) . v_j: capsules [B, m, D], inputs [B, n, D] -> [B, n, m]."""
    returned = torch.einsum("gmde,bme->bgmd", matrices, capsules)
    return (inputs[:, None] @ returned.transpose(-1, -2) * members).sum(1)
