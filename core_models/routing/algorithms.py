"""Routing by agreement as pure functions: squash, simple, dynamic (Sabour 2017) and EM routing (Hinton 2018).

Axes of inputs precede those of outputs: votes [..., L, N, D] are the predictions of each of L input capsules for each
of N output capsules of width D. Computed in float32 or better, also under autocast. For routing over source words see
`guided` and `query_guided`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from core_models.layers.precision import wide

SQUASH_FLOOR = 1e-8  # added under the root of the length: the gradient at a zero vector is finite
SCALE_FLOOR = 1e-16  # added under the root of the mean square: far below that of capsules, and zero stays zero
Squash = Literal["sabour", "unit_slope"]
Reduction = Literal["sum", "mean"]


@dataclass(frozen=True)
class Routing:
    """The result of a routing: `capsules` [..., N, D] and the assignments of each iteration.

    history: assignments [..., L, N] of every iteration, uniform in the first; they sum to one over N. activations
    [..., N] of the output capsules (EM routing).
    """

    capsules: Tensor
    history: tuple[Tensor, ...]
    activations: Tensor | None = None

    @cached_property
    def assignments(self) -> Tensor:
        """The assignments of all iterations [iterations, ..., L, N]."""
        positions = self.capsules.shape[:-2]
        return torch.stack([assignment.expand(*positions, *assignment.shape[-2:]) for assignment in self.history])


@wide
def squash(vectors: Tensor) -> Tensor:
    """Squash vectors [..., D] from length s to s^2 / (1 + s^2) (Sabour 2017, Eq. 1)."""
    square = vectors.square().sum(-1, keepdim=True)
    return vectors * ((square + SQUASH_FLOOR).sqrt() / (1 + square))


@wide
def squash_unit_slope(vectors: Tensor) -> Tensor:
    """Squash vectors [..., D] from length s to s / sqrt(1 + s^2), which hardly changes short vectors.

    Departs from Sabour 2017, where the length s^2 / (1 + s^2) has slope zero at zero.
    """
    return vectors * torch.rsqrt(1 + vectors.square().sum(-1, keepdim=True))


SQUASHES = {"sabour": squash, "unit_slope": squash_unit_slope}


@wide
def unit_scale(vectors: Tensor) -> Tensor:
    """Divide vectors [..., d] by their root mean square, so that their numbers are about 1.

    For input of a layer norm or a residual sum: compared with the norm's epsilon of 1e-5, or with a stream of deviation
    1, short vectors such as squashed capsules would vanish, and so would their gradient.
    """
    return torch.nn.functional.rms_norm(vectors, vectors.shape[-1:], eps=SCALE_FLOOR)


@wide
def simple_routing(votes: Tensor, iterations: int = 3, detach: bool = False) -> Routing:
    """Routing by agreement without a squash: an output capsule is the weighted mean of its votes (Li 2019).

    votes [..., L, N, D]; the first of `iterations` is uniform, the others update B by the scalar product of output and
    vote. detach: as in `dynamic_routing`.
    """
    _check(votes, iterations)
    uniform = votes.new_full((1, 1), 1 / votes.shape[-2]).expand(votes.shape[-3:-1])
    history = [uniform]
    capsules = votes.mean(-3)
    logits: Tensor | None = None
    for _ in range(iterations - 1):
        if detach:
            capsules, logits = capsules.detach(), None if logits is None else logits.detach()
        agreement = _over_width(votes * capsules[..., None, :, :])
        logits = agreement if logits is None else logits + agreement
        logs = torch.log_softmax(logits, dim=-1)
        history.append(logs.exp())
        # Shares of an output in logs: one whose assignments vanish is still the mean of its largest ones.
        capsules = _weighted(torch.softmax(logs, dim=-2), votes)
    return Routing(capsules, tuple(history))


@wide
def dynamic_routing(
    votes: Tensor,
    iterations: int = 3,
    mask: Tensor | None = None,
    normalize_mass: bool = False,
    detach: bool = False,
    squash_by: Squash = "sabour",
) -> Routing:
    """Dynamic routing by the scalar product of output and vote (Dou 2019, Algorithm 1; Sabour 2017, Procedure 1).

    votes [..., L, N, D]; mask [..., L], False for padding, which sends nothing. The first of `iterations` is uniform,
    the others update. The paper's "cosine" is the scalar product of a squashed and an unsquashed vector.
    normalize_mass: multiply the input of each output by N / L. Otherwise its length is about L / N, and a squashed
    vector's about that squared: for many outputs almost zero, with almost no gradient. detach: gradients pass through
    the last iteration only; results of earlier iterations are constants. squash_by: `squash`, or `squash_unit_slope`.
    """
    _check(votes, iterations)
    squashed = SQUASHES[squash_by]
    real = None if mask is None else mask[..., None].to(votes.dtype)
    sent = votes if real is None else votes * real[..., None]
    if normalize_mass:
        sent = sent * (votes.shape[-2] / votes.shape[-3])
    uniform = votes.new_full((1, 1), 1 / votes.shape[-2]).expand(votes.shape[-3:-1])
    history = [uniform if real is None else uniform * real]
    capsules = squashed(sent.sum(-3) / votes.shape[-2])  # uniform assignments need no product
    logits: Tensor | None = None
    for _ in range(iterations - 1):
        if detach:
            capsules, logits = capsules.detach(), None if logits is None else logits.detach()
        agreement = _over_width(votes * capsules[..., None, :, :])
        logits = agreement if logits is None else logits + agreement
        assignments = torch.softmax(logits, dim=-1)
        history.append(assignments if real is None else assignments * real)
        capsules = squashed(_weighted(assignments, sent))
    return Routing(capsules, tuple(history))


@wide
def em_routing(
    votes: Tensor,
    activations: Tensor,
    beta_a: Tensor,
    beta_u: Tensor,
    iterations: int = 3,
    inverse_temperature: float | Sequence[float] = 1.0,
    variance_floor: float = 1e-6,
    normalize_mass: bool = False,
    renormalize: bool = False,
    detach: bool = False,
    width_reduction: Reduction = "sum",
) -> Routing:
    """EM routing: every output capsule is a Gaussian fitted to its votes (Dou 2019, Eq. 10 to 16; Hinton 2018).

    votes [..., L, N, D], activations [..., L] above 0, beta_a and beta_u [N]. inverse_temperature: a number, or one per
    iteration. normalize_mass: multiply the mass of each output by N / L, so that it does not vanish for many outputs.
    renormalize: divide the weighted assignments by their sum over outputs, as code released by others does; then the
    input activations have no effect. detach: as in `dynamic_routing`. width_reduction: the cost and the log-density are
    sums over a capsule's D numbers (Eq. 14 to 16), or means. Sums grow with D, so that wide capsules are all or nothing
    from the start; for D = 1 both are equal. Output capsules are activation times mean.
    """
    _check(votes, iterations)
    width = votes.shape[-1]
    over_width = _over_width if width_reduction == "sum" else _mean_over_width
    inputs, outputs = votes.shape[-3:-1]
    temperatures = _temperatures(inverse_temperature, iterations)
    uniform = votes.new_full((1, 1), 1 / outputs)
    history = [uniform.expand(inputs, outputs)]
    # In logs, so that an output with vanishing assignments still has a mean, of the inputs with the largest ones. The
    # first assignments are equal for all outputs, so results computed from them stay [..., L, 1].
    assigned, logs = uniform, uniform.log()
    active = activations.clamp(min=torch.finfo(votes.dtype).tiny).log()[..., None]
    for number, temperature in enumerate(temperatures):
        weights = (logs if renormalize else logs + active).expand(*active.shape[:-1], logs.shape[-1])
        sent = assigned if renormalize else assigned * activations[..., None]
        mass = sent.expand(weights.shape).sum(-2)  # [..., N]
        shares = torch.softmax(weights, dim=-2)
        mean = _weighted(shares, votes)  # [..., N, D]
        distance = (votes - mean[..., None, :, :]).square()
        variance = _weighted(shares, distance) + variance_floor
        scale = mass * (outputs / inputs) if normalize_mass else mass
        spread = 0.5 * over_width(variance.log())  # [..., N]
        constant = (width if width_reduction == "sum" else 1) * (1 + math.log(2 * math.pi)) / 2
        logit = temperature * (beta_a - beta_u * scale - scale * (spread + constant))
        if number < iterations - 1:
            if detach:
                logit, spread, variance = logit.detach(), spread.detach(), variance.detach()
                distance = (votes - mean.detach()[..., None, :, :]).square()
            # log N(V; mean, variance) up to a term shared by all outputs.
            prior = torch.nn.functional.logsigmoid(logit) - spread
            fit = over_width(distance * (-0.5 / variance)[..., None, :, :])
            logs = torch.log_softmax(fit + prior[..., None, :], dim=-1)
            assigned = logs.exp()
            history.append(assigned)
    activation = torch.sigmoid(logit)
    return Routing(activation[..., None] * mean, tuple(history), activation)


def schedule(final: float, iterations: int) -> list[float]:
    """Rising inverse temperatures: final (1 - 0.95^(k + 1)) in iteration k from 0 (others cite Hinton 2018)."""
    return [final * (1 - 0.95 ** (number + 1)) for number in range(iterations)]


def _weighted(assignments: Tensor, votes: Tensor) -> Tensor:
    """Sum over inputs of assignment times vote: [..., L, N], [..., L, N, D] -> [..., N, D], one input at a time."""
    parts = zip(assignments.unbind(-2), votes.unbind(-3), strict=True)
    first, vote = next(parts)
    total = first[..., None] * vote
    for assignment, vote in parts:
        total = torch.addcmul(total, assignment[..., None], vote)
    return total


def _over_width(values: Tensor) -> Tensor:
    """Sum over the last axis; width one, as in the paper, needs no pass."""
    return values.squeeze(-1) if values.shape[-1] == 1 else values.sum(-1)


def _mean_over_width(values: Tensor) -> Tensor:
    """Mean over the last axis."""
    return _over_width(values) / values.shape[-1]


def _check(votes: Tensor, iterations: int) -> None:
    if votes.dim() < 3:
        raise ValueError(f"votes [..., inputs, outputs, width] are needed, here are {list(votes.shape)}")
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: the first one is uniform, so there is at least one")


def _temperatures(temperature: float | Sequence[float], iterations: int) -> Sequence[float]:
    temperatures = [temperature] * iterations if isinstance(temperature, int | float) else list(temperature)
    if len(temperatures) != iterations:
        raise ValueError(
            f"{len(temperatures)} inverse temperatures for {iterations} iterations; give one each, or one number"
        )
    return temperatures
