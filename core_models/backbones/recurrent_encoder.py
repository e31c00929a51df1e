"""Encoders for a recurrent decoder: bidirectional recurrent cells, or Transformer layers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.profiler import record_function

from core_models.backbones.transformer import Block, encode_stack
from core_models.config import ModelConfig
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.layers.deferred_linear import DeferredProducts
from core_models.layers.dropout import Dropout
from core_models.layers.positional_embedding import PositionalEmbedding
from core_models.layers.recurrent import RECURRENCE, RecurrentCell


def read(unit: RecurrentCell, inputs: Tensor, first: Tensor, mask: Tensor | None, backwards: bool = False) -> Tensor:
    """Run a cell over inputs [S, N, e] from an initial state [S, ...]: the hidden vectors of all positions, [S, N, d].

    At padding, where mask [S, N] is False, the state is unchanged.
    """
    projected, linear = unit.from_input(inputs).unbind(1), DeferredProducts(inputs.shape[1])
    columns = [None] * len(projected) if mask is None else _padded(mask)
    state, states = first, list[Tensor]()
    order = range(len(projected))
    with record_function(RECURRENCE):
        for position in order[::-1] if backwards else order:
            (recurrent,) = linear([unit.from_state], unit.hidden(state))
            after, is_real = unit.combine(projected[position], recurrent, state), columns[position]
            state = after if is_real is None else torch.where(is_real[:, None], after, state)
            states.append(unit.hidden(state))
    return torch.stack(states[::-1] if backwards else states, dim=1)


def _padded(mask: Tensor) -> list[Tensor | None]:
    """The mask's columns [S]; None for columns without padding, if that is known without waiting for a device."""
    if mask.device.type != "cpu":
        return list(mask.unbind(1))
    whole = mask.all(0).tolist()
    return [None if full else column for full, column in zip(whole, mask.unbind(1), strict=True)]


def read_both_ways(ahead: RecurrentCell, back: RecurrentCell, embedded: Tensor, mask: Tensor) -> Tensor:
    """Encode embedded words in both directions: [S, I, e] with mask [S, I] -> annotations [S, I, 2 d]."""
    hidden = embedded.new_zeros(len(embedded), ahead.width)
    ways = (
        read(unit, embedded, unit.first(hidden), mask, backwards) for unit, backwards in ((ahead, False), (back, True))
    )
    return torch.cat([*ways], dim=-1)


class TransformerEncoder(nn.Module):
    """Transformer encoder layers with positions, for a recurrent decoder."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.positions = PositionalEmbedding(
            config.d_model, config.position_embedding == "learned", config.max_positions
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.drop = Dropout(config.dropout)

    def forward(self, embedded: Tensor, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Encode raw embeddings [S, I, d] of source words [S, I] -> memory [S, I, d]."""
        x = self.drop(embedded * self.scale + self.positions(0, words.shape[1]))
        return encode_stack(x, words, mask, self.blocks, self.norm, active)
