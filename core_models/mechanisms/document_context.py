"""What mechanisms that read the sentences before share: their options, and attention that adds nothing where none are.

Knows no particular way to read them. A sentence at a document's start goes through as if the mechanism were not there:
to the last bit, whatever the biases are.
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

CONTEXT_AXIS = {"encoder": "context", "decoder": "context_output"}  # where a side looks at its own language


class ContextOptions(Options):
    context_sentences: int = Field(3, gt=0, description="K, how many sentences before are read")
    context_length: int = Field(256, gt=0, description="pieces of each; in a run of the paper 100, and cut (E15)")
    long_context: Literal["refuse", "cut"] = Field("refuse", description="what is done with a longer one")

    def use(self, states: bool = False, outputs: bool = False, joined: bool = False) -> ContextUse:
        """What a mechanism with these options reads."""
        cut = self.long_context == "cut"
        return ContextUse(self.context_sentences, self.context_length, cut, states, outputs, joined)


class SidedOptions(ContextOptions):
    side: Sides = "both"


class Concatenation(Mechanism):
    """The sentences before, each with its </s>, stand before the sentence as one source (Tiedemann and Scherrer 2017).

    Nothing but the text changes: the separator is </s>, and the system translates the last of the sentences.
    """

    Options = ContextOptions

    def __init__(self, spec: BackboneSpec, options: ContextOptions) -> None:
        super().__init__(spec, options)
        self.context = options.use(joined=True)


class OverStacks(Mechanism):
    """Looks at states of the sentences before from the output of a stack: the encoder's at those of the sources, the
    decoder's at those of the translations. They are given, not learned through. A subclass says what it makes of them
    (`plan`) and what becomes of the output (`at`)."""

    options: SidedOptions
    hook_points: Sequence[HookPoint]

    def __init__(self, spec: BackboneSpec, options: SidedOptions) -> None:
        super().__init__(spec, options)
        self.sides = sides_of(options.side)
        self.context = options.use(states=True, outputs="decoder" in self.sides)
        self.hook_points = tuple(STACK_OUTPUT[side] for side in self.sides)
        self.widths = {"encoder": spec.widths["memory"], "decoder": spec.widths["stream"]}
        self.state_widths = {"encoder": spec.widths["memory"], "decoder": spec.widths["state"]}

    def plan(self, side: Side, states: Tensor, mask: Tensor, own: MechanismState) -> dict[str, Tensor]:
        """Tensors [S, ...] that are the same for all positions, of states [S, K, C, d] that are real by the mask."""
        raise NotImplementedError

    def remember(self, states: ContextStates, own: MechanismState) -> dict[str, Tensor]:
        """The plan of each side; what only the encoder reads is not kept for a search."""
        kept: dict[str, Tensor] = {}
        given = {"encoder": (states.memory, states.mask), "decoder": (states.outputs, states.outputs_mask)}
        for side in self.sides:
            vectors, mask = given[side]
            if vectors is not None and mask is not None:
                planned = self.plan(side, vectors, mask, own)
                (own.notes if side == "encoder" else kept).update({f"{side}.{name}": planned[name] for name in planned})
        return kept

    def held(self, own: MechanismState, side: Side) -> dict[str, Tensor]:
        """The plan of a side by its names."""
        found = own.notes if side == "encoder" else own.sentence
        return {name.removeprefix(f"{side}."): found[name] for name in found if name.startswith(f"{side}.")}


class ContextAttention(nn.Module):
    """Multi-head attention from positions [S, N, d] to a context, with a norm of its own before it (pre-norm)."""

    def __init__(self, spec: BackboneSpec, memory_width: int | None = None) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.attention = CrossAttention(width, memory_width or width, spec.heads, spec.dropout)
        self.norm = nn.LayerNorm(width) if spec.final_norm else nn.Identity()
        for linear in (self.attention.query, self.attention.memory, self.attention.output):
            xavier(linear)

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor, weights: bool) -> tuple[Tensor, Tensor | None]:
        """x [S, N, d], keys and values [S, 2, H, M, e], mask [S, M] -> [S, N, d] and, if asked, shares [S, H, N, M]."""
        return self.attention(self.norm(x), keys, mask, weights)


class LayerShares:
    """The attention weights of all layers of a side, recorded as one array when the last layer has been."""

    def __init__(self, name: str, axes: Sequence[str], layers: int) -> None:
        self.name, self.axes, self.layers = name, tuple(axes), layers

    def wanted(self, own: MechanismState) -> bool:
        return own.wants(self.name)

    def add(self, own: MechanismState, layer: int, share: Tensor | None) -> None:
        """share [S, H, N, ...] of one layer."""
        if share is None:
            return
        own.notes[f"{self.name}.{layer}"] = share
        if layer == self.layers - 1:
            shares = [own.notes[f"{self.name}.{number}"] for number in range(self.layers)]
            own.record(self.name, ("layer", "head", *self.axes), torch.stack(shares, dim=1))


def xavier(linear: nn.Linear) -> nn.Linear:
    """The linear map with Xavier's uniform weights and biases of zero."""
    nn.init.xavier_uniform_(linear.weight)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


def by_word(order: WordOrder, shares: Tensor) -> Tensor:
    """Shares of the words of a grid, [S, H, N, K, C], in their order: [S, H, N, n]."""
    return order.gather(shares.permute(0, 3, 4, 1, 2)).permute(0, 2, 3, 1)


def only_where(real: Tensor, changed: Tensor, x: Tensor) -> Tensor:
    """`changed` [S, N, d] where a sentence has a context, real [S], else x as it was."""
    return torch.where(real[:, None, None], changed, x)
