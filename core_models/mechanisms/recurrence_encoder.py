"""Recurrence encoder (Hao 2019): a second encoder of the source, an attentive recurrent network of T steps.

A step attends with its state to the embedded words and feeds what it found to a recurrent unit; a second network does
so in the other direction, and the states of both, joined, are a memory of T vectors. In the decoder a gate weighs what
the attention to the encoder found against what an attention to this memory finds: in every layer, or in the top layer
alone, the short-cut. Without attention (`recurrence=words`) the network reads a word a step.
"""

from __future__ import annotations

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
from core_models.layers.attention import CrossAttention
from core_models.layers.dropout import Dropout
from core_models.layers.recurrent import CELLS
from core_models.mechanisms.document_context import LayerShares, xavier
from core_models.settings import ConfigError


class RecurrenceEncoderOptions(Options):
    recurrence: Literal["attentive", "words"] = Field(
        "attentive", description="a step attends to the whole sentence (ARN), or reads the next word (RNN)"
    )
    steps: int = Field(8, ge=2, description="T, of the attentive recurrence")
    bidirectional: bool = Field(True, description="a second network; with recurrence=words it reads from the end")
    unit: Literal["gru", "lstm"] = Field("gru", description="the recurrent unit f")
    short_cut: bool = Field(True, description="only the top decoder layer reads it; else every layer does")

    @model_validator(mode="after")
    def _all_are_read(self) -> RecurrenceEncoderOptions:
        reject_unused_options(self, {"steps": ("recurrence", "attentive")})
        return self


class RecurrentNetwork(nn.Module):
    """One direction: h_t = f(h_{t-1}, c_t) from h_0 = 0, where c_t is attended with h_{t-1}, or is the next word."""

    def __init__(self, spec: BackboneSpec, options: RecurrenceEncoderOptions) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.steps = options.steps
        self.unit = CELLS[options.unit](width, width)
        xavier(self.unit.from_input)
        self.unit.initialize()
        self.attention = _attention(spec) if options.recurrence == "attentive" else None

    def forward(self, words: Tensor, mask: Tensor, backward: bool, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        """States of words [S, I, d], mask [S, I]: [S, T, d], and if wanted what each step attended to [S, T, H, I].

        T is I where a step reads a word. Of the other direction the last step stands first.
        """
        state = self.unit.first(words.new_zeros(len(words), 1, words.shape[-1]))
        if self.attention is None:
            return self._read(words, mask, state, backward), None
        keys = self.attention.keys_and_values(words)
        states, shares = [], []
        for _ in range(self.steps):
            context, share = self.attention(self.unit.hidden(state), keys, mask, need_weights)
            state = self.unit(self.unit.from_input(context), state)
            states.append(self.unit.hidden(state))
            shares.append(share)
        if backward:
            states, shares = states[::-1], shares[::-1]
        return torch.cat(states, dim=1), torch.cat(shares, dim=2).transpose(1, 2) if need_weights else None

    def _read(self, words: Tensor, mask: Tensor, state: Tensor, backward: bool) -> Tensor:
        """States after each word [S, I, d]; padding leaves the state as it is."""
        projected, states = self.unit.from_input(words), {}
        for place in sorted(range(words.shape[1]), reverse=backward):
            here = slice(place, place + 1)
            state = torch.where(mask[:, here, None], self.unit(projected[:, here], state), state)
            states[place] = self.unit.hidden(state)
        return torch.cat([states[place] for place in range(words.shape[1])], dim=1)


class RecurrentMemory(nn.Module):
    """The encoder's one layer: both directions joined by a linear map, and a feed-forward part, with a norm each."""

    def __init__(self, spec: BackboneSpec, options: RecurrenceEncoderOptions) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.directions = ("forward", "backward") if options.bidirectional else ("forward",)
        self.networks = nn.ModuleList(RecurrentNetwork(spec, options) for _ in self.directions)
        self.join = xavier(nn.Linear(len(self.directions) * width, width))
        self.join_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.expand, self.contract = xavier(nn.Linear(width, 4 * width)), xavier(nn.Linear(4 * width, width))
        self.drop = Dropout(spec.dropout)

    def forward(self, words: Tensor, mask: Tensor, own_state: MechanismState) -> Tensor:
        """Words [S, I, d], mask [S, I] -> memory [S, T, d]."""
        states = []
        for direction, network in zip(self.directions, self.networks, strict=True):
            name = f"{direction}.attention"
            of_direction, share = network(words, mask, direction == "backward", own_state.wants(name))
            states.append(of_direction)
            if share is not None:
                own_state.record(name, ("step", "head", "source"), share, "source")
        x = self.join_norm(self.join(torch.cat(states, dim=-1)))
        return self.feed_forward_norm(x + self.drop(self.contract(self.drop(torch.relu(self.expand(x))))))


class GatedReader(nn.Module):
    """The gated sum in a decoder layer: g o found + (1 - g) o recurrent, g = sigmoid(W [found; recurrent] + b)."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__()
        width = spec.widths["stream"]
        self.attention = _attention(spec)
        self.gate = xavier(nn.Linear(2 * width, width))

    def forward(
        self, found: Tensor, query: Tensor, keys: Tensor, mask: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Found and query [S, N, d], keys [S, 2, H, T, e], mask [S, T] -> sum, gate [S, N, d], weights [S, H, N, T]."""
        recurrent, share = self.attention(query, keys, mask, need_weights)
        gate = torch.sigmoid(self.gate(torch.cat([found, recurrent], dim=-1)))
        return gate * found + (1 - gate) * recurrent, gate, share


def _attention(spec: BackboneSpec) -> CrossAttention:
    """Attention with the backbone's heads; a sentence of padding alone finds zeros."""
    width = spec.widths["stream"]
    attention = CrossAttention(width, width, spec.heads, spec.attention_dropout, may_be_empty=True)
    for linear in (attention.query, attention.memory, attention.output):
        xavier(linear)
    return attention


class RecurrenceEncoder(Mechanism):
    """A recurrent memory of the source beside the encoder's, read by the decoder through a gate (Hao 2019)."""

    Options = RecurrenceEncoderOptions
    options: RecurrenceEncoderOptions
    hook_points = (HookPoint.ENCODER_LAYER_INPUT, HookPoint.DECODER_CROSS)

    def __init__(self, spec: BackboneSpec, options: RecurrenceEncoderOptions) -> None:
        super().__init__(spec, options)
        if HookPoint.DECODER_CROSS not in spec.hook_points:
            raise ConfigError("the decoder has no layers that attend to the encoder, whose finding could be gated")
        count = spec.layers["decoder"]
        self.first = count - 1 if options.short_cut else 0  # the lowest decoder layer that reads it
        self.encoder = RecurrentMemory(spec, options)
        self.readers = nn.ModuleList(GatedReader(spec) for _ in range(self.first, count))
        self.axis = "step" if options.recurrence == "attentive" else "source"
        self.shares = LayerShares("decoder.attention", ("target", self.axis), len(self.readers))

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Keys and values of every reader over the recurrent memory, [S, readers, 2, H, T, e], and its mask [S, T]."""
        recurrent = own_state.notes["memory"]
        keys = torch.stack([reader.attention.keys_and_values(recurrent) for reader in self.readers], dim=1)
        attentive = self.options.recurrence == "attentive"
        return {"keys": keys, "mask": recurrent.new_ones(recurrent.shape[:2]).bool() if attentive else memory_mask}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point is HookPoint.ENCODER_LAYER_INPUT:
            if view.layer == 0:
                own_state.notes["memory"] = self.encoder(view.embedded, view.mask, own_state)
            return x
        number = view.layer - self.first
        if number < 0:
            return x
        keys, mask = own_state.sentence["keys"][:, number], own_state.sentence["mask"]
        wanted = self.shares.is_recorded(own_state)
        gated, gate, share = self.readers[number](x, view.query, keys, mask, wanted)
        self.shares.add(own_state, number, share)
        self._record_gate(number, gate, own_state)
        return gated

    def _record_gate(self, number: int, gate: Tensor, own_state: MechanismState) -> None:
        """Record how much of the sum is the encoder's, a mean over d, of all layers after the last."""
        if not own_state.wants("decoder.gate"):
            return
        own_state.notes[f"gate.{number}"] = gate.mean(-1)
        if number == len(self.readers) - 1:
            gates = [own_state.notes[f"gate.{layer}"] for layer in range(len(self.readers))]
            own_state.record("decoder.gate", ("layer", "target"), torch.stack(gates, dim=1))
