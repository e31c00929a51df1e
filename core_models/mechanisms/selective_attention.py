"""Selective attention over a document (Maruf 2019): sparse attention to sentences, then to words within them.

The memory is the preceding sentences (online) or also the following ones (offline). Weights are sparsemax over
sentences, whose keys are the means of their words' states, times softmax over the words of each; many are zero. Then a
norm, a feed-forward layer without residuals, a norm, and a gate: x' = l x + (1 - l) c, l = sigmoid(C_s x + C_c c). No
gradient passes into the states, and </s> is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, MechanismState, View
from core_models.layers.attention import CrossAttention, join_heads, split_heads
from core_models.layers.dropout import Dropout
from core_models.layers.masked_softmax import masked_softmax
from core_models.layers.precision import wide
from core_models.layers.sparsemax import sparsemax
from core_models.mechanisms.document_context import (
    CONTEXT_AXIS,
    OverStacks,
    SidedOptions,
    by_word,
    only_where,
    xavier,
)
from core_models.mechanisms.sides import POSITIONS, Side
from core_models.settings import ConfigError
from core_models.text.batches import WordOrder
from core_models.text.documents import ContextUse
from core_models.text.vocabulary import EOS

if TYPE_CHECKING:
    from core_models.text.batches import Batch

Distribution = Literal["sparsemax", "softmax"]


class SelectiveOptions(SidedOptions):
    context_sentences: int = Field(
        10, gt=0, description="the nearest before, all of a document that is as long; offline as many after"
    )
    memory: Literal["online", "offline"] = "online"
    over_sentences: Distribution = "sparsemax"
    over_words: Distribution = "softmax"

    def use(self, states: bool = False, outputs: bool = False, joined: bool = False) -> ContextUse:
        context_use = super().use(states, outputs, joined)
        return replace(context_use, after=self.context_sentences) if self.memory == "offline" else context_use


class Plan(NamedTuple):
    """Tensors shared by all positions: keys of sentences [S, H, K, e], keys and values of words [S, H, K, C, e]."""

    sentences: Tensor
    words: Tensor
    values: Tensor
    mask: Tensor  # [S, K, C]


class SelectiveLook(nn.Module):
    """Attention from positions [S, N, d] to sentences and words, by the same heads."""

    def __init__(self, spec: BackboneSpec, width: int, states: int, options: SelectiveOptions) -> None:
        super().__init__()
        self.heads, self.options = spec.heads, options
        self.sentence_query, self.sentence_key = nn.Linear(width, width), nn.Linear(states, width)
        self.to_words = CrossAttention(width, states, spec.heads, 0.0)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.from_stream, self.from_context = nn.Linear(width, width), nn.Linear(width, width)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                xavier(module)
        self.asking_norm, self.found_norm, self.context_norm = (nn.LayerNorm(width) for _ in range(3))
        self.drop = Dropout(spec.dropout)

    def plan(self, states: Tensor, mask: Tensor) -> Plan:
        """Keys and values of states [S, K, C, d]; a sentence's key is computed from the mean of its words."""
        real = mask[..., None].to(states.dtype)
        means = (states * real).sum(2) / real.sum(2).clamp(min=1)  # [S, K, d]
        sentences = split_heads(self.sentence_key(means), self.heads)
        words = self.to_words.keys_and_values(states.flatten(1, 2)).unflatten(3, mask.shape[1:])
        return Plan(sentences, words[:, 0], words[:, 1], mask)

    def forward(self, x: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
        """Context [S, N, d] of x [S, N, d], weights of sentences [S, H, N, K] and of all words [S, H, N, K, C]."""
        normed = self.asking_norm(x)
        sentences = scaled(split_heads(self.sentence_query(normed), self.heads))
        words = scaled(split_heads(self.to_words.query(normed), self.heads))
        present = plan.mask.any(2)[:, None, None]
        over_sentences = shared(sentences @ plan.sentences.transpose(-1, -2), present, self.options.over_sentences)
        energies = (words @ plan.words.flatten(2, 3).transpose(-1, -2)).unflatten(-1, plan.mask.shape[1:])
        over_words = shared(energies, plan.mask[:, None, None], self.options.over_words)
        shares = over_sentences[..., None] * over_words
        context = join_heads(shares.flatten(-2).to(plan.values.dtype) @ plan.values.flatten(2, 3))
        context = self.found_norm(self.to_words.output(context))
        hidden = self.drop(torch.relu(self.expand(context)))
        return self.context_norm(self.contract(hidden)), over_sentences, shares

    def gate(self, x: Tensor, context: Tensor) -> Tensor:
        return torch.sigmoid(self.from_stream(x) + self.from_context(context))


def scaled(queries: Tensor) -> Tensor:
    """Queries [..., e] divided by the square root of their width."""
    return queries * queries.shape[-1] ** -0.5


@wide
def shared(energies: Tensor, mask: Tensor, kind: Distribution) -> Tensor:
    """A distribution over the last axis within the mask; zeros where the mask is empty."""
    if kind == "sparsemax":
        return sparsemax(energies, mask.expand(energies.shape))
    return masked_softmax(energies, mask)


class SelectiveAttention(OverStacks):
    """SAN from the encoder's output to context sources, from the decoder's to context translations, or both."""

    Options = SelectiveOptions
    options: SelectiveOptions

    def __init__(self, spec: BackboneSpec, options: SelectiveOptions) -> None:
        super().__init__(spec, options)
        if options.memory == "offline" and "decoder" in self.sides:
            raise ConfigError(
                "memory=offline reads the sentences after one, and their translations are not there yet when it is "
                "translated; give side=encoder, as san-encoder has it"
            )
        self.look = nn.ModuleDict(
            {side: SelectiveLook(spec, self.widths[side], self.state_widths[side], options) for side in self.sides}
        )

    def read(self, batch: Batch, own_state: MechanismState) -> dict[str, Tensor]:
        """Mark the words that are not </s>; only these are attended to."""
        context = batch.context
        if context is None:
            raise ValueError("a batch for selective attention has a context, of absent sentences if need be")
        own_state.notes["encoder.are_words"] = context.words != EOS
        if context.outputs is not None:
            own_state.notes["decoder.are_words"] = context.outputs != EOS
        return {}

    def plan(self, side: Side, states: Tensor, mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """The `Plan` of the words without </s>, and the mask [S, K, C] with </s>, which gives the order in a trace."""
        plan = self.look[side].plan(states, mask & own_state.notes[f"{side}.are_words"])
        return {**plan._asdict(), "order": mask}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        side, look = view.side, self.look[view.side]
        tensors = self.plan_of(own_state, side)
        plan = Plan(*(tensors[name] for name in Plan._fields))
        context, sentence_shares, shares = look(x, plan)
        gate = look.gate(x, context)
        real = plan.mask.any(1).any(1)
        position, axis = POSITIONS[side], CONTEXT_AXIS[side]
        own_state.record(f"{side}.sentence_attention", ("head", position, "distance"), sentence_shares)
        own_state.record(
            f"{side}.attention",
            ("head", position, axis),
            lambda: by_word(WordOrder.of(tensors["order"], self.context.after), shares),
        )
        own_state.record(f"{side}.gate", (position,), lambda: ((1 - gate) * real[:, None, None]).mean(-1))
        return only_where(real, gate * x + (1 - gate) * context, x)
