"""Guided dynamic routing: source words to PAST, FUTURE and REDUNDANT capsules at every target position (Zheng 2019).

What does not depend on the position (votes, their projection, the whole first iteration) is a plan, made once per
sentence; positions, or the beams of a search, are routed side by side. Nothing is below float32. Knows the algorithm
alone: which capsules stand for what is the mechanism's.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from core_models.layers.additive_energy import additive_energies
from core_models.layers.precision import wide
from core_models.routing.algorithms import Routing, squash

Agreement = Literal["paper", "bounded"]


class How(TypedDict, total=False):
    """How words are routed, for who hands it on; `route` says what each is, and what it is unless told."""

    iterations: int
    agreement: Agreement
    detach: bool


class Plan(NamedTuple):
    """One sentence's part of the routing; capsules stand before words, so that all products are batched ones."""

    votes: Tensor  # [B, J, I, D]
    projected: Tensor  # [B, J, I, D], the votes' term of the agreement
    first: Tensor  # [B, J, D], capsules of the first iteration
    answer: Tensor  # [B, J, D], their term of the agreement


@wide
def plan(votes: Tensor, vote_projection: Tensor, capsule_projection: Tensor, mask: Tensor) -> Plan:
    """What is the same at every position: votes [B, I, J, D], projections [D, D] (v W), mask [B, I]."""
    ordered = votes.transpose(1, 2).contiguous()
    first = first_capsules(ordered, mask)
    return Plan(ordered, ordered @ vote_projection, first, first @ capsule_projection)


@wide
def first_capsules(votes: Tensor, mask: Tensor) -> Tensor:
    """Capsules of the first iteration, whose assignments are all alike: the squashed mean vote times I / J.

    votes [B, J, I, D], mask [B, I] -> [B, J, D].
    """
    real = mask[:, None, :, None].to(votes.dtype)
    return squash((votes * real).sum(2) / votes.shape[1])


def first_assignments(mask: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Assignments of the first iteration: mask [B, I] -> [B, 1, I, J] of J = count capsules."""
    real = mask[:, None, None, :].to(dtype)
    return (real / count).expand(-1, count, -1, -1).permute(0, 2, 3, 1)


@wide
def route(
    guide: Tensor,
    plan: Plan,
    capsule_projection: Tensor,
    weight: Tensor,
    mask: Tensor,
    iterations: int = 3,
    agreement: Agreement = "paper",
    detach: bool = False,
) -> Routing:
    """Route every position's words by a plan: guide [B, T, D] (z projected, biases in it) -> capsules [B, T, J, D].

    The history holds assignments [B, T, I, J] of every iteration: softmax over capsules, then the mask, so that padding
    sends nothing. The last update of Algorithm 1 would be read by nobody and is not made. `bounded` agreement is
    tanh(.) / sqrt(D), as in the released code; `detach` lets gradients through the last iteration only: what it finds
    of those before it is a constant.
    """
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: the first one is uniform, so there is at least one")
    count, width = plan.votes.shape[1], plan.votes.shape[-1]
    real = mask[:, None, None, :].to(guide.dtype)  # [B, 1, 1, I]
    history = [first_assignments(mask, count, guide.dtype)]
    capsules, answer = plan.first[:, :, None], plan.answer[:, :, None]  # [B, J, 1, D], from now on [B, J, T, D]
    logits: Tensor | None = None
    for number in range(1, iterations):
        with torch.set_grad_enabled(torch.is_grad_enabled() and not (detach and number < iterations - 1)):
            if number > 1:
                answer = capsules @ capsule_projection
            update = additive_energies(guide[:, None] + answer, plan.projected, weight)  # [B, J, T, I] (Eq. 7)
            if agreement == "bounded":
                update = torch.tanh(update) * width**-0.5
            logits = update if logits is None else logits + update
            assignments = torch.softmax(logits, dim=1) * real
            history.append(assignments.permute(0, 2, 3, 1))
            capsules = squash(assignments @ plan.votes)
    positions = capsules.expand(-1, -1, guide.shape[1], -1)
    return Routing(positions.transpose(1, 2), tuple(history))


def guided_routing(
    votes: Tensor,
    guide: Tensor,
    vote_projection: Tensor,
    capsule_projection: Tensor,
    weight: Tensor,
    mask: Tensor,
    **how: Unpack[How],
) -> Routing:
    """Guided dynamic routing (Zheng 2019, Algorithm 1, Eq. 4 to 7) in one call: `plan`, then `route`.

    votes [B, I, J, D], guide [B, T, D], projections [D, D], weight [D], mask [B, I] -> capsules [B, T, J, D] and
    assignments [iterations, B, T, I, J]. how: the options of `route`.
    """
    made = plan(votes, vote_projection, capsule_projection, mask)
    return route(guide, made, capsule_projection, weight, mask, **how)
