"""Aggregation of attention heads by routing (Li 2019): an attention's heads are input capsules of its output.

Each head casts a vote for every output capsule; simple or EM routing (`core_models.routing`) finds their agreement, and
the output capsules side by side take the place of the concatenated heads and their linear map. Positions are
independent, so a decoding step needs no state.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    View,
    reject_unused_options,
)
from core_models.layers.chunked_recompute import in_pieces
from core_models.mechanisms.sides import POSITIONS, Side
from core_models.routing.algorithms import Reduction, Routing, em_routing, simple_routing
from core_models.settings import ConfigError

Attention = Literal["encoder_self", "decoder_self", "decoder_cross"]
HEADS: dict[Attention, HookPoint] = {
    "encoder_self": HookPoint.ENCODER_HEADS,
    "decoder_self": HookPoint.DECODER_HEADS,
    "decoder_cross": HookPoint.DECODER_CROSS_HEADS,
}
SIDE: dict[Attention, Side] = {"encoder_self": "encoder", "decoder_self": "decoder", "decoder_cross": "decoder"}
ATTENTION_AT = {hook_point: attention for attention, hook_point in HEADS.items()}
OF_EM = ("inverse_temperature", "variance_floor", "width_reduction")


class HeadAggregationOptions(Options):
    routing: Literal["em", "simple", "linear"] = Field(
        "em", description="how heads become one vector; linear is the Transformer's own map, and nothing else here"
    )
    attentions: tuple[Attention, ...] = Field(
        ("encoder_self",), min_length=1, description="whose heads: encoder_self, decoder_self, decoder_cross"
    )
    layers: tuple[int, ...] = Field(
        (1,), description="of each of these attentions, counted from 1; an empty list means all"
    )
    capsules: int | None = Field(None, gt=0, description="N; it must divide d. d capsules of width 1 if none is given")
    iterations: int = Field(3, gt=0, description="T; the first one is uniform")
    inputs: Literal["all", "own"] = Field("all", description="f_h of all heads side by side, or of its own")
    input_width: int | None = Field(None, gt=0, description="numbers of an input capsule f_h; d if none is given")
    activation: Literal["tanh", "none"] = Field("tanh", description="of f_h, which is not linear")
    detach: bool = Field(False, description="gradients go through the last iteration only")
    inverse_temperature: float = Field(1.0, gt=0, description="lambda of EM routing")
    variance_floor: float = Field(0.01, gt=0, description="of EM routing: votes of few heads often nearly agree")
    width_reduction: Reduction = Field(
        "sum", description="of EM routing's cost and log-density over a capsule's numbers: sum, or mean if it is wide"
    )

    @model_validator(mode="after")
    def _all_are_read(self) -> HeadAggregationOptions:
        routed = [name for name in type(self).model_fields if name != "routing" and name not in OF_EM]
        reject_unused_options(self, dict.fromkeys(OF_EM, ("routing", "em")))
        if self.routing == "linear":
            reject_unused_options(self, dict.fromkeys(routed, ("routing", "em")))
        for name in ("attentions", "layers"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: one is named twice")
        return self


class HeadMaps(nn.Module):
    """A linear map without bias for each of H heads, of its own input or of one that all share."""

    def __init__(self, heads: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, inputs, outputs))  # [H, in, out]
        for matrix in self.weight.data:
            nn.init.xavier_uniform_(matrix)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., H, in], or [..., 1, in] for all heads alike, to [..., H, out]."""
        flat = x.flatten(0, -3).transpose(0, 1)  # [H, P, in] or [1, P, in]
        return torch.matmul(flat, self.weight).transpose(0, 1).unflatten(0, x.shape[:-2])


class HeadRouting(nn.Module):
    """The routing of one attention: heads [S, N, H, e] to its output [S, N, d]."""

    tensor_functions = ("_joined_capsules",)

    def __init__(self, heads: int, width: int, options: HeadAggregationOptions) -> None:
        super().__init__()
        self.options = options
        self.capsules = options.capsules or width
        if width % self.capsules:
            raise ConfigError(f"capsules: {self.capsules} do not divide a vector of {width} numbers")
        inner, together = options.input_width or width, options.inputs == "all"
        self.transform = HeadMaps(heads, width if together else width // heads, inner)
        self.vote = HeadMaps(heads, inner, width)
        if options.routing == "em":
            self.active = nn.Parameter(torch.randn(heads, inner) * inner**-0.5)
            self.beta_a = nn.Parameter(torch.zeros(self.capsules))
            self.beta_u = nn.Parameter(torch.zeros(self.capsules))

    def forward(self, heads: Tensor) -> Tensor:
        inputs = [tensor.flatten(0, 1) for tensor in self.inputs(heads)]
        return in_pieces(self._joined_capsules, inputs, self.betas).view(*heads.shape[:2], -1)

    def inputs(self, heads: Tensor) -> tuple[Tensor, ...]:
        """Votes [S, N, H, capsules, width] and, for EM routing, the heads' activations [S, N, H]."""
        features = self.transform(heads.flatten(-2)[..., None, :] if self.options.inputs == "all" else heads)
        features = torch.tanh(features) if self.options.activation == "tanh" else features
        votes = self.vote(features).unflatten(-1, (self.capsules, -1))
        if self.options.routing != "em":
            return (votes,)
        return votes, torch.sigmoid((features * self.active).sum(-1))

    @property
    def betas(self) -> tuple[Tensor, ...]:
        """Parameters of EM routing that all positions share."""
        return (self.beta_a, self.beta_u) if self.options.routing == "em" else ()

    def route(self, votes: Tensor, *others: Tensor) -> Routing:
        """Route votes [..., H, N, D], with activations [..., H] and the betas [N] of EM routing."""
        options = self.options
        if options.routing == "simple":
            return simple_routing(votes, options.iterations, options.detach)
        return em_routing(
            votes,
            *others,
            iterations=options.iterations,
            inverse_temperature=options.inverse_temperature,
            variance_floor=options.variance_floor,
            detach=options.detach,
            width_reduction=options.width_reduction,
        )

    def _joined_capsules(self, *inputs: Tensor) -> Tensor:
        return self.route(*inputs).capsules.flatten(-2)


class HeadAggregation(Mechanism):
    """Routing in place of the output map of some attentions (Li 2019).

    EM routing of capsules wider than one number with `width_reduction=sum` may hardly train: a UserWarning.
    """

    Options = HeadAggregationOptions
    options: HeadAggregationOptions

    def __init__(self, spec: BackboneSpec, options: HeadAggregationOptions) -> None:
        super().__init__(spec, options)
        self.routed = nn.ModuleDict()
        if options.routing == "linear":
            return
        self.hook_points = self.replaces = tuple(HEADS[attention] for attention in options.attentions)
        if not spec.hook_points.issuperset(self.hook_points):
            return  # which the builder refuses
        self.layers = {attention: self._layers(spec, attention) for attention in options.attentions}
        for attention, layers in self.layers.items():
            self.routed[attention] = nn.ModuleList(
                HeadRouting(spec.heads, spec.widths["stream"], options) for _ in layers
            )
        wide = spec.widths["stream"] // (options.capsules or spec.widths["stream"])
        if options.routing == "em" and wide > 1 and options.width_reduction == "sum":
            warnings.warn(
                f"head_aggregation: sums over capsules of {wide} numbers may make assignments all or nothing from the "
                "start; width_reduction=mean takes means",
                stacklevel=2,
            )
        self.replaced_maps = [
            (HEADS[attention], layer) for attention, layers in self.layers.items() for layer in layers
        ]

    def _layers(self, spec: BackboneSpec, attention: Attention) -> Sequence[int]:
        """The layers of an attention, counted from 0; raises ConfigError if there are fewer."""
        side, layers = SIDE[attention], self.options.layers
        count = spec.layers[side]
        if not all(1 <= layer <= count for layer in layers):
            raise ConfigError(f"layers: the {side} has layers 1 to {count}, not {', '.join(map(str, layers))}")
        return sorted(layer - 1 for layer in layers) if layers else range(count)

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        attention = ATTENTION_AT[hook_point]
        layers = self.layers[attention]
        if view.layer not in layers:
            return x
        routing = self.routed[attention][layers.index(view.layer)]
        self._trace(attention, view.layer, routing, x, own_state)
        return routing(x).view_as(x).to(x.dtype)

    def _trace(
        self, attention: Attention, layer: int, routing: HeadRouting, heads: Tensor, own_state: MechanismState
    ) -> None:
        """Repeat the routing unchunked if a trace records it; arrays of all layers are written after the last one."""
        position, layers = POSITIONS[SIDE[attention]], self.layers[attention]
        route = cache(lambda: routing.route(*routing.inputs(heads), *routing.betas))
        arrays = {
            "assignments": (("iteration", "head", "capsule"), lambda: route().assignments.movedim(0, 2)),
            "activations": (("capsule",), lambda: route().activations),
        }
        for array, (axes, value) in arrays.items():
            name = f"{attention}.{array}"
            if not own_state.wants(name) or (array == "activations" and self.options.routing != "em"):
                continue
            own_state.notes[f"{name}.{layer}"] = value()
            if layer == layers[-1]:
                stacked = torch.stack([own_state.notes[f"{name}.{number}"] for number in layers], dim=1)
                sums = "capsule" if array == "assignments" else None
                own_state.record(name, ("layer", position, *axes), stacked, sums)
