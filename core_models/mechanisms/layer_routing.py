"""Layer aggregation by routing (Dou 2019): a position's layers are input capsules, its new vector N output capsules.

Each layer casts a vote for every output capsule; dynamic or EM routing (`core_models.routing`) finds their agreement,
and the concatenated output capsules, scaled, are the output of the stack. N does not change the computation of votes:
it splits the same d numbers of a layer into more or fewer capsules.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, MechanismState
from core_models.layers.chunked_recompute import in_pieces
from core_models.mechanisms.layer_aggregation import Aggregation, AggregationOptions
from core_models.mechanisms.sides import POSITIONS, Side
from core_models.routing.algorithms import Reduction, Routing, Squash, dynamic_routing, em_routing, schedule, unit_scale
from core_models.settings import ConfigError

LEAST_ACTIVE = 1e-6  # lower bound of an input activation without sigmoid


class RoutingOptions(AggregationOptions):
    former_names: ClassVar = {**AggregationOptions.former_names, "normalise_mass": "normalize_mass"}

    capsules: int | None = Field(None, gt=0, description="N; it must divide d. As in the paper, d capsules of width 1")
    iterations: int = Field(3, gt=0)
    inputs: Literal["all", "own"] = Field("all", description="F_l of all layers, or of its own (Table 3)")
    activation: Literal["tanh", "none"] = Field("tanh", description="of F_l, of which the paper says nothing")
    votes: Literal["per_capsule", "concatenated"] = Field(
        "per_capsule", description="from its own F_l, or from all of them: the size that Table 1 prints"
    )
    normalize_mass: bool = Field(False, description="times N / L, so that many capsules do not make it vanish")
    detach: bool = Field(False, description="gradients go through the last iteration only")
    scale: Literal["unit", "none"] = Field(
        "unit",
        description="capsules side by side over their root mean square, so that the norm or sum after them sees them; "
        "none as in the paper: a norm's epsilon then outweighs the squashed capsules of dynamic routing",
    )


class LayerMaps(nn.Module):
    """Linear map of each of L layers [.., d], from its own vector (L d^2) or from all of them (L^2 d^2)."""

    def __init__(self, layers: int, width: int, together: bool) -> None:
        super().__init__()
        self.layers = layers
        self.weight = nn.Parameter(torch.empty(layers * width if together else width, layers * width))  # [in, out]
        for outputs in self.weight.data.split(width, dim=1):
            nn.init.xavier_uniform_(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map the layers: [..., L, d] -> [..., L, d]."""
        if len(self.weight) != x.shape[-1]:
            return (x.flatten(-2) @ self.weight).unflatten(-1, (self.layers, -1))
        each = self.weight.unflatten(-1, (self.layers, -1)).transpose(0, 1)  # [L, d, d]
        flat = x.flatten(0, -3).transpose(0, 1)  # [L, positions, d]
        return torch.bmm(flat, each).transpose(0, 1).reshape(x.shape)


class CapsuleVotes(nn.Module):
    """Votes [..., L, N, d / N] of the layers [..., L, d] (Dou 2019, Eq. 7), and their features F_l (Eq. 8)."""

    def __init__(self, layers: int, width: int, options: RoutingOptions) -> None:
        super().__init__()
        self.capsules = options.capsules or width
        if width % self.capsules:
            raise ConfigError(f"capsules: {self.capsules} do not divide a vector of {width} numbers")
        self.transform = LayerMaps(layers, width, options.inputs == "all")
        self.vote = LayerMaps(layers, width, options.votes == "concatenated")
        self.activation = torch.tanh if options.activation == "tanh" else None

    def forward(self, layers: Tensor) -> tuple[Tensor, Tensor]:
        features = self.transform(layers)
        features = features if self.activation is None else self.activation(features)
        return features, self.vote(features).unflatten(-1, (self.capsules, -1))


class LayerRouting(Aggregation):
    """Shared part of both routings: votes in, concatenated capsules out, assignments into the trace."""

    options: RoutingOptions
    tensor_functions = ("_capsules",)

    def combination(self, layers: int, width: int) -> nn.Module:
        return CapsuleVotes(layers, width, self.options)

    def combined(self, side: Side, layers: Tensor, own_state: MechanismState) -> Tensor:
        features, votes = self.combine[side](layers)
        own_state.record(f"{side}.votes", (POSITIONS[side], "layer", "capsule", "width"), votes)
        inputs = (votes, *self.activations_of(side, features, own_state))
        self._trace(side, inputs, own_state)
        capsules = in_pieces(self._capsules, [tensor.flatten(0, 1) for tensor in inputs], self.betas(side))
        scaled = unit_scale(capsules) if self.options.scale == "unit" else capsules
        return scaled.view_as(layers[..., 0, :]).to(layers.dtype)

    def _capsules(self, *inputs: Tensor) -> Tensor:
        return self.route(*inputs).capsules.flatten(-2)

    def _trace(self, side: Side, inputs: Sequence[Tensor], own_state: MechanismState) -> None:
        """Repeat the routing unchunked if a trace records it."""
        route = cache(lambda: self.route(*inputs, *self.betas(side)))
        axes = (POSITIONS[side], "iteration", "layer", "capsule")
        own_state.record(f"{side}.assignments", axes, lambda: route().assignments.movedim(0, 2), sums_to_one="capsule")
        if len(inputs) > 1:
            own_state.record(f"{side}.activations", (POSITIONS[side], "capsule"), lambda: route().activations)

    def activations_of(self, side: Side, features: Tensor, own_state: MechanismState) -> tuple[Tensor, ...]:
        """Further inputs of the routing at each position, such as activations."""
        return ()

    def betas(self, side: Side) -> tuple[Tensor, ...]:
        """Inputs of the routing shared by all positions."""
        return ()

    def route(self, votes: Tensor, *others: Tensor) -> Routing:
        """Route votes [..., L, N, D] with the results of `activations_of` and `betas`."""
        raise NotImplementedError


class DynamicRoutingOptions(RoutingOptions):
    squash: Squash = Field(
        "sabour", description="a length s becomes s^2 / (1 + s^2), or s / sqrt(1 + s^2), whose slope at zero is one"
    )


class DynamicRouting(LayerRouting):
    """Dynamic routing (Dou 2019, Algorithm 1): assignments by the scalar product of output capsule and vote."""

    Options = DynamicRoutingOptions
    options: DynamicRoutingOptions

    def route(self, votes: Tensor, *others: Tensor) -> Routing:
        options = self.options
        return dynamic_routing(
            votes,
            options.iterations,
            normalize_mass=options.normalize_mass,
            detach=options.detach,
            squash_by=options.squash,
        )


class EMRoutingOptions(RoutingOptions):
    former_names: ClassVar = {**RoutingOptions.former_names, "renormalise": "renormalize"}

    input_activation: Literal["sigmoid", "none"] = Field(
        "sigmoid",
        description="Eq. 10 prints none, but speaks of a probability; without it, what is below 1e-6 counts as that",
    )
    inverse_temperature: float = Field(1.0, gt=0, description="lambda of Eq. 14, or the limit of a rising schedule")
    schedule: Literal["constant", "rising"] = Field(
        "constant", description="rising: lambda (1 - 0.95^k) in iteration k, 5, 10 and 14 % of it in the first three"
    )
    variance_floor: float = Field(
        0.01, gt=0, description="votes of few layers often nearly agree: at 1e-6 their gradients keep it from training"
    )
    renormalize: bool = Field(False, description="as released codes of others do: input activations lose their effect")
    width_reduction: Reduction = Field(
        "sum",
        description="of cost and log-density over a capsule's D numbers: sum as in Eq. 14 to 16, or mean, which trains "
        "where D is large",
    )


class EMRouting(LayerRouting):
    """EM routing (Dou 2019, Algorithm 2 and Eq. 10 to 16): every output capsule is a Gaussian over its votes.

    With `concatenated` votes the input activations are computed from all layers too: the size of Table 1. Capsules
    wider than one number with `width_reduction=sum` follow the paper to the letter and may hardly train: a UserWarning.
    """

    Options = EMRoutingOptions
    options: EMRoutingOptions

    def __init__(self, spec: BackboneSpec, options: EMRoutingOptions) -> None:
        super().__init__(spec, options)
        self.heard, self.active, self.beta_a, self.beta_u = (
            nn.ModuleDict(),
            nn.ParameterDict(),
            nn.ParameterDict(),
            nn.ParameterDict(),
        )
        for side in self.sides:
            layers, capsules = spec.layers[side] + options.include_embedding, self.combine[side].capsules
            if options.votes == "concatenated":
                self.heard[side] = LayerMaps(layers, self.width, True)
            self.active[side] = nn.Parameter(torch.randn(layers, self.width) * self.width**-0.5)
            self.beta_a[side] = nn.Parameter(torch.zeros(capsules))
            self.beta_u[side] = nn.Parameter(torch.zeros(capsules))
        wide = self.width // capsules
        if wide > 1 and options.width_reduction == "sum":
            warnings.warn(
                f"em_routing: sums over capsules of {wide} numbers may make assignments all or nothing from the start, "
                "and the system hardly train; width_reduction=mean takes means",
                stacklevel=2,
            )

    def activations_of(self, side: Side, features: Tensor, own_state: MechanismState) -> tuple[Tensor, ...]:
        """Activations of the layers, [S, N, L]."""
        inputs = self.heard[side](features) if side in self.heard else features
        logits = (inputs * self.active[side]).sum(-1)
        sigmoid = self.options.input_activation == "sigmoid"
        activations = torch.sigmoid(logits) if sigmoid else logits.clamp(min=LEAST_ACTIVE)
        own_state.record(f"{side}.inputs_active", (POSITIONS[side], "layer"), activations)
        return (activations,)

    def betas(self, side: Side) -> tuple[Tensor, ...]:
        return self.beta_a[side], self.beta_u[side]

    def route(self, votes: Tensor, *others: Tensor) -> Routing:
        options = self.options
        temperature: float | list[float] = options.inverse_temperature
        if options.schedule == "rising":
            temperature = schedule(options.inverse_temperature, options.iterations)
        return em_routing(
            votes,
            *others,
            iterations=options.iterations,
            inverse_temperature=temperature,
            variance_floor=options.variance_floor,
            normalize_mass=options.normalize_mass,
            renormalize=options.renormalize,
            detach=options.detach,
            width_reduction=options.width_reduction,
        )
