"""Layer aggregation (Dou 2019): the output of a stack combines all its layers, not only the last.

A position's layers H^1 .. H^L, each through the stack's final norm, are combined by fixed weights (Eq. 3), or by
weights that a network predicts from them (Eq. 4). Positions are independent, so a decoding step needs no state.
`layer_routing` combines by agreement instead.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, Mechanism, MechanismState, Options, View
from core_models.mechanisms.sides import LAYER_INPUT, STACK_OUTPUT, Side, Sides, sides_of
from core_models.settings import ConfigError


class AggregationOptions(Options):
    former_names: ClassVar = {"normalise": "normalize"}

    side: Sides = "both"
    include_embedding: bool = Field(
        False, description="H^0 is aggregated too; the paper shows six inputs of six layers"
    )
    normalize: bool = Field(True, description="a layer norm after it, where the stack has none (post-norm)")
    residual: bool = Field(
        False,
        description="add the last layer as it is, before the final norm: gentler where a trained model is begun from",
    )


class Aggregation(Mechanism):
    """Replaces the output of a stack; a subclass builds, for each side, the module that combines [S, N, L, d]."""

    options: AggregationOptions

    def __init__(self, spec: BackboneSpec, options: AggregationOptions) -> None:
        super().__init__(spec, options)
        self.sides = sides_of(options.side)
        for side in self.sides:
            if LAYER_INPUT[side] not in spec.hook_points:
                raise ConfigError(f"there is no stack of layers in this {side} that could be aggregated")
        self.hook_points = self.replaces = tuple(STACK_OUTPUT[side] for side in self.sides)
        self.width = spec.widths["stream"]
        counts = {side: spec.layers[side] + options.include_embedding for side in self.sides}
        self.combine = nn.ModuleDict({side: self.combination(counts[side], self.width) for side in self.sides})
        needs_norm = options.normalize and not spec.final_norm
        self.norm = nn.ModuleDict(
            {side: nn.LayerNorm(self.width) if needs_norm else nn.Identity() for side in self.sides}
        )

    def combination(self, layers: int, width: int) -> nn.Module:
        """A module from [S, N, layers, d] to [S, N, d]."""
        raise NotImplementedError

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        layers = view.layers if self.options.include_embedding else view.layers[1:]
        combined = self.combined(view.side, torch.stack(layers, dim=-2), own_state)
        return self.norm[view.side](x + combined if self.options.residual else combined)

    def combined(self, side: Side, layers: Tensor, own_state: MechanismState) -> Tensor:
        return self.combine[side](layers)


class WeightedSum(nn.Module):
    """Weighted sum sum_l W_l H^l, W_l a vector or a matrix: [..., L, d] -> [..., d]; initially the mean."""

    def __init__(self, layers: int, width: int, matrices: bool) -> None:
        super().__init__()
        even = torch.eye(width) if matrices else torch.ones(width)
        self.weight = nn.Parameter((even / layers).expand(layers, *even.shape).clone())  # [L, d] or [L, d, d]

    def forward(self, layers: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return (layers * self.weight).sum(-2)
        return layers.flatten(-2) @ self.weight.flatten(0, 1)


class LinearOptions(AggregationOptions):
    form: Literal["vector_top", "matrix_top", "matrix_dense"] = Field(
        "vector_top",
        description="Eq. 3; matrices; or matrices at every layer's input too, over all states below (its 14.7 million)",
    )


class LinearCombination(Aggregation):
    """Fixed weights, the same at every position (Dou 2018; Dou 2019, Eq. 3).

    `vector_top` as printed: 2 L d parameters. `matrix_top`: 2 L d^2. `matrix_dense` also makes the input of layer l of
    the l states below it and takes the embedding in: 2 (1 + ... + (L + 1)) d^2, the count of the paper's Table 1.
    """

    Options = LinearOptions
    options: LinearOptions

    def __init__(self, spec: BackboneSpec, options: LinearOptions) -> None:
        if options.form == "matrix_dense":
            options = options.model_copy(update={"include_embedding": True})
        super().__init__(spec, options)
        self.inputs = nn.ModuleDict()
        if options.form == "matrix_dense":
            self.hook_points = self.replaces = (*self.hook_points, *(LAYER_INPUT[side] for side in self.sides))
            for side in self.sides:
                counts = range(1, spec.layers[side] + 1)
                self.inputs[side] = nn.ModuleList(WeightedSum(count, self.width, True) for count in counts)

    def combination(self, layers: int, width: int) -> nn.Module:
        return WeightedSum(layers, width, self.options.form != "vector_top")

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point in STACK_OUTPUT.values():
            return super().at(hook_point, x, view, own_state)
        return self.inputs[view.side][view.layer](torch.stack(view.layers, dim=-2))


class DynamicOptions(AggregationOptions):
    form: Literal["shared_hidden", "per_layer"] = Field(
        "shared_hidden", description="one network L d -> hidden -> L d (its 25.2 million), or one a layer, hidden d"
    )
    hidden: int | None = Field(None, gt=0, description="of the networks; 4 d shared, d per layer")


class DrawnWeights(nn.Module):
    """Sum with predicted weights, sum_l FFN_l(H^1 .. H^L) * H^l (Dou 2019, Eq. 3 and 4): [..., L, d] -> [..., d].

    Both forms are one network; in the form per layer, the second product is separate for each layer's hidden units.
    """

    def __init__(self, layers: int, width: int, shared: bool, hidden: int) -> None:
        super().__init__()
        self.layers, self.shared = layers, shared
        self.hidden = nn.Linear(layers * width, hidden if shared else layers * hidden)
        self.drawn = nn.Parameter(torch.empty((hidden, layers * width) if shared else (layers, hidden, width)))
        # The predicted weights are added to those of the mean. Initially they are two to four times as large.
        self.bias = nn.Parameter(torch.full((layers, width), 1 / layers))
        # Each network separately: for a tensor of three axes PyTorch would count layers as inputs.
        for matrix in (*self.hidden.weight.data.split(hidden), *([self.drawn.data] if shared else self.drawn.data)):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.hidden.bias)

    def forward(self, layers: Tensor) -> Tensor:
        hidden = torch.relu(self.hidden(layers.flatten(-2)))
        if self.shared:
            weights = (hidden @ self.drawn).unflatten(-1, (self.layers, -1))
        else:
            weights = (hidden.unflatten(-1, (self.layers, 1, -1)) @ self.drawn)[..., 0, :]
        return ((weights + self.bias) * layers).sum(-2)


class DynamicCombination(Aggregation):
    """Weights that a network predicts from all layers at each position (Dou 2019, Eq. 3 and 4)."""

    Options = DynamicOptions
    options: DynamicOptions

    def combination(self, layers: int, width: int) -> nn.Module:
        shared = self.options.form == "shared_hidden"
        return DrawnWeights(layers, width, shared, self.options.hidden or (4 * width if shared else width))
