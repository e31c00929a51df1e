"""Shared parts of mechanisms that read context sentences: options, and attention that is skipped without context.

The first sentence of a document passes bit for bit as without the mechanism, whatever the biases are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, ContextStates, HookPoint, Mechanism, MechanismState, Options
from core_models.layers.attention import CrossAttention
from core_models.mechanisms.sides import STACK_OUTPUT, Side, Sides, sides_of
from core_models.text.batches import WordOrder
from core_models.text.documents import ContextUse

CONTEXT_AXIS = {"encoder": "context", "decoder": "context_output"}  # the trace axis of each side's context words


class ContextOptions(Options):
    context_sentences: int = Field(3, gt=0, description="K, how many sentences before are read")
    context_length: int = Field(256, gt=0, description="most pieces of one of them; Yang 2019 prints no limit (E15)")
    long_context: Literal["refuse", "cut"] = Field("refuse", description="what is done with a longer one")

    def use(self, states: bool = False, outputs: bool = False, joined: bool = False) -> ContextUse:
        """The context that a mechanism with these options reads."""
        cut = self.long_context == "cut"
        return ContextUse(self.context_sentences, self.context_length, cut, states, outputs, joined)


class SidedOptions(ContextOptions):
    side: Sides = "both"


class Concatenation(Mechanism):
    """Context sentences, each with its </s>, prepended to the source (Tiedemann and Scherrer 2017).

    Only the text changes: the separator is </s>, and the system translates the last sentence.
    """

    Options = ContextOptions

    def __init__(self, spec: BackboneSpec, options: ContextOptions) -> None:
        super().__init__(spec, options)
        self.context = options.use(joined=True)


class OverStacks(Mechanism):
    """Attention from the output of a stack to the states of context sentences.

    The encoder's stack attends to context sources, the decoder's to context translations; no gradient passes into their
    states. A subclass defines what is computed once per sentence (`plan`) and the new output (`at`).
    """

    options: SidedOptions
    hook_points: Sequence[HookPoint]

    def __init__(self, spec: BackboneSpec, options: SidedOptions) -> None:
        super().__init__(spec, options)
        self.sides = sides_of(options.side)
        self.context = options.use(states=True, outputs="decoder" in self.sides)
        self.hook_points = tuple(STACK_OUTPUT[side] for side in self.sides)
        self.widths = {"encoder": spec.widths["memory"], "decoder": spec.widths["stream"]}
        self.state_widths = {"encoder": spec.widths["memory"], "decoder": spec.widths["state"]}

    def plan(self, side: Side, states: Tensor, mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Tensors [S, ...] shared by all positions, from states [S, K, C, d] with their mask [S, K, C]."""
        raise NotImplementedError

    def remember(self, states: ContextStates, own_state: MechanismState) -> dict[str, Tensor]:
        """The plan of each side; a plan read only by the encoder is not stored for the search."""
        stored: dict[str, Tensor] = {}
        states_of = {"encoder": (states.memory, states.mask), "decoder": (states.outputs, states.outputs_mask)}
        for side in self.sides:
            vectors, mask = states_of[side]
            if vectors is not None and mask is not None:
                planned = self.plan(side, vectors, mask, own_state)
                (own_state.notes if side == "encoder" else stored).update(
                    {f"{side}.{name}": planned[name] for name in planned}
                )
        return stored

    def plan_of(self, own_state: MechanismState, side: Side) -> dict[str, Tensor]:
        """The tensors of a side's plan by name."""
        tensors = own_state.notes if side == "encoder" else own_state.sentence
        return {name.removeprefix(f"{side}."): tensors[name] for name in tensors if name.startswith(f"{side}.")}


class ContextAttention(nn.Module):
    """Multi-head attention from positions [S, N, d] to a context, with its own norm before it (pre-norm)."""

    def __init__(self, spec: BackboneSpec, memory_width: int | None = None) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.attention = CrossAttention(
            width, memory_width or width, spec.heads, spec.attention_dropout, may_be_empty=True
        )
        self.norm = nn.LayerNorm(width) if spec.final_norm else nn.Identity()
        for linear in (self.attention.query, self.attention.memory, self.attention.output):
            xavier(linear)

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Attend from x [S, N, d] to keys [S, 2, H, M, e], mask [S, M] -> [S, N, d], weights [S, H, N, M] or None."""
        return self.attention(self.norm(x), keys, mask, need_weights)


class LayerShares:
    """The attention weights of all layers of a side, recorded as one array after the last layer."""

    def __init__(self, name: str, axes: Sequence[str], layers: int) -> None:
        self.name, self.axes, self.layers = name, tuple(axes), layers

    def is_recorded(self, own_state: MechanismState) -> bool:
        return own_state.wants(self.name)

    def add(self, own_state: MechanismState, layer: int, share: Tensor | None) -> None:
        """Add the weights [S, H, N, ...] of one layer."""
        if share is None:
            return
        own_state.notes[f"{self.name}.{layer}"] = share
        if layer == self.layers - 1:
            shares = [own_state.notes[f"{self.name}.{number}"] for number in range(self.layers)]
            own_state.record(self.name, ("layer", "head", *self.axes), torch.stack(shares, dim=1))


def xavier(linear: nn.Linear) -> nn.Linear:
    """Initialize a linear map with Xavier's uniform weights and zero biases."""
    nn.init.xavier_uniform_(linear.weight)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


def by_word(order: WordOrder, shares: Tensor) -> Tensor:
    """Flatten the shares of a grid of words [S, H, N, K, C] into text order: [S, H, N, n]."""
    return order.gather(shares.permute(0, 3, 4, 1, 2)).permute(0, 2, 3, 1)


def only_where(real: Tensor, changed: Tensor, x: Tensor) -> Tensor:
    """`changed` [S, N, d] for sentences with context, real [S], else x unchanged."""
    return torch.where(real[:, None, None], changed, x)
