"""Document-Transformer (Zhang 2018): a separate context encoder, attended by every layer of encoder and decoder.

The K context sentences form one sequence, encoded by the source embeddings, positions and a few layers like the
backbone's. After its self-attention every encoder and decoder layer attends to them, and a gate weighs stream and
context: x' = g x + (1 - g) y, g = sigmoid(W_x x + W_y y).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, Mechanism, MechanismState, View
from core_models.layers.attention import never_empty
from core_models.layers.dropout import Dropout
from core_models.layers.positional_embedding import PositionalEmbedding
from core_models.mechanisms.document_context import (
    ContextAttention,
    LayerShares,
    SidedOptions,
    only_where,
    xavier,
)
from core_models.mechanisms.sides import POSITIONS, SUBLAYER, sides_of
from core_models.settings import ConfigError

if TYPE_CHECKING:
    from core_models.text.batches import Batch


class DocumentEncoderOptions(SidedOptions):
    context_layers: int = Field(1, gt=0, description="N_c, of the encoder of the context; the released code has six")


class GatedSublayer(nn.Module):
    """Attention to the context, then the gate, then a norm if the backbone is post-norm."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.attend = ContextAttention(spec)
        self.from_stream, self.from_context = xavier(nn.Linear(width, width)), xavier(nn.Linear(width, width))
        self.after = nn.Identity() if spec.final_norm else nn.LayerNorm(width)

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        context, share = self.attend(x, keys, mask, need_weights)
        gate = torch.sigmoid(self.from_stream(x) + self.from_context(context))
        mixed = self.after(gate * x + (1 - gate) * context)
        return only_where(mask.any(1), mixed, x), share


class DocumentEncoder(Mechanism):
    """The context as one more sequence with its own encoder."""

    Options = DocumentEncoderOptions
    options: DocumentEncoderOptions
    hook_points: Sequence[HookPoint]

    def __init__(self, spec: BackboneSpec, options: DocumentEncoderOptions) -> None:
        super().__init__(spec, options)
        if spec.encoder_layer is None:
            raise ConfigError("the context's encoder has layers like the backbone's, which has none")
        self.context = options.use()
        self.sides = sides_of(options.side)
        self.hook_points = tuple(SUBLAYER[side] for side in self.sides)
        self.embed, self.scale = spec.source_embedding, math.sqrt(spec.widths["stream"])
        self.positions = PositionalEmbedding(spec.widths["stream"], False, 0)
        self.encoder = nn.ModuleList(spec.encoder_layer() for _ in range(options.context_layers))
        for module in self.encoder.modules():
            if isinstance(module, nn.Linear):
                xavier(module)
        self.norm = nn.LayerNorm(spec.widths["stream"]) if spec.final_norm else nn.Identity()
        self.drop = Dropout(spec.dropout)
        self.sublayers = nn.ModuleDict(
            {side: nn.ModuleList(GatedSublayer(spec) for _ in range(spec.layers[side])) for side in self.sides}
        )
        self.shares = {
            side: LayerShares(f"{side}.attention", (POSITIONS[side], "context"), spec.layers[side])
            for side in self.sides
        }

    def read(self, batch: Batch, own_state: MechanismState) -> dict[str, Tensor]:
        """The context's keys and values for every layer of a side, [S, layers, 2, H, n, e], and their mask."""
        if batch.context is None:
            raise ValueError("a batch for the document encoder has a context, of absent sentences if need be")
        words, order = batch.context.in_order()
        x = self.drop(self.embed(words) * self.scale + self.positions(0, words.shape[1]))
        shown = never_empty(order.mask)  # where there is no context, what comes of it is not read
        for layer in self.encoder:
            x, _ = layer.attend_to_itself(x, shown, False, False)
            x = layer.feed_forward(x)
        memory, stored = self.norm(x), {"mask": order.mask}
        for side in self.sides:
            keys = [sublayer.attend.attention.keys_and_values(memory) for sublayer in self.sublayers[side]]
            # The search does not need what only the encoder reads.
            (own_state.notes if side == "encoder" else stored)[f"{side}.keys"] = torch.stack(keys, dim=1)
        return stored

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        keys = (own_state.notes if view.side == "encoder" else own_state.sentence)[f"{view.side}.keys"]
        shares = self.shares[view.side]
        sublayer = self.sublayers[view.side][view.layer]
        x, share = sublayer(x, keys[:, view.layer], own_state.sentence["mask"], shares.is_recorded(own_state))
        shares.add(own_state, view.layer, share)
        return x
