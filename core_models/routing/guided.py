"""Guided dynamic routing: source words to PAST, FUTURE and REDUNDANT capsules at every target position (Zheng 2019).

Everything independent of the position (votes, their projection, the first iteration) is a plan, computed once per
sentence; positions, or the beams of a search, are routed in parallel. Computed in float32 or better. The mechanism
defines the meaning of the capsules.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from core_models.layers.additive_energy import additive_energies
from core_models.layers.precision import wide
from core_models.routing.algorithms import Routing, squash

Agreement = Literal["paper", "bounded"]


class GuidedRoutingOptions(TypedDict, total=False):
    """Keyword options of `route`, for callers that pass them on."""

    iterations: int
    agreement: Agreement
    detach: bool


class Plan(NamedTuple):
    """The position-independent part of the routing; capsules precede words, so that all products are batched."""

    votes: Tensor  # [B, J, I, D]
    projected: Tensor  # [B, J, I, D], the votes' term of the agreement
    first: Tensor  # [B, J, D], capsules of the first iteration
    answer: Tensor  # [B, J, D], their term of the agreement


@wide
def plan(votes: Tensor, vote_projection: Tensor, capsule_projection: Tensor, mask: Tensor) -> Plan:
    """Compute the plan of votes [B, I, J, D] with projections [D, D] (v W) and mask [B, I]."""
    ordered = votes.transpose(1, 2).contiguous()
    first = first_capsules(ordered, mask)
    return Plan(ordered, ordered @ vote_projection, first, first @ capsule_projection)


@wide
def first_capsules(votes: Tensor, mask: Tensor) -> Tensor:
    """Capsules of the first iteration, with uniform assignments: squash(sum of the votes / J).

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
    """Route the words at every position: guide [B, T, D] (projected z with biases) -> capsules [B, T, J, D].

    The history holds assignments [B, T, I, J] of every iteration: softmax over capsules, then the mask, so that padding
    sends nothing. The last update of Algorithm 1 has no effect and is skipped. agreement `bounded`: tanh(.) / sqrt(D),
    as in the released code. detach: gradients pass through the last iteration only, results of earlier iterations are
    constants.
    """
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: the first one is uniform, so there is at least one")
    count, width = plan.votes.shape[1], plan.votes.shape[-1]
    real = mask[:, None, None, :].to(guide.dtype)  # [B, 1, 1, I]
    history = [first_assignments(mask, count, guide.dtype)]
    capsules, answer = plan.first[:, :, None], plan.answer[:, :, None]  # [B, J, 1, D], from now on [B, J, T, D]
    if detach:
        answer = capsules.detach() @ capsule_projection
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
    **how: Unpack[GuidedRoutingOptions],
) -> Routing:
    """Guided dynamic routing (Zheng 2019, Algorithm 1, Eq. 4 to 7): `plan`, then `route`.

    votes [B, I, J, D], guide [B, T, D], projections [D, D], weight [D], mask [B, I] -> capsules [B, T, J, D] and
    assignments [iterations, B, T, I, J]. how: the options of `route`.
    """
    sentence_plan = plan(votes, vote_projection, capsule_projection, mask)
    return route(guide, sentence_plan, capsule_projection, weight, mask, **how)
