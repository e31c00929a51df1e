"""Selective attention over a document (Maruf 2019): sentences are chosen sparsely, then words within them.

Online the sentences before are the document's memory, offline those after the sentence too. Sparsemax over them, whose
keys are means of their words' states, times softmax over the words of each: many have no share at all. Then a norm, a
feed-forward part without residuals, a norm, and a gate: x' = l x + (1 - l) c, l = sigmoid(C_s x + C_c c). States are
given, not learned through, and have no </s>.
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
        found = super().use(states, outputs, joined)
        return replace(found, after=self.context_sentences) if self.memory == "offline" else found


class Plan(NamedTuple):
    """What is the same for all positions: keys of sentences [S, H, K, e], of words and values [S, H, K, C, e]."""

    sentences: Tensor
    words: Tensor
    values: Tensor
    mask: Tensor  # [S, K, C]


class SelectiveLook(nn.Module):
    """From positions [S, N, d] to sentences and words, by the same heads."""

    def __init__(self, spec: BackboneSpec, width: int, states: int, options: SelectiveOptions) -> None:
        super().__init__()
        self.heads, self.options = spec.heads, options
        self.sentence_query, self.sentence_key = nn.Linear(width, width), nn.Linear(states, width)
        self.to_words = CrossAttention(width, states, spec.heads, spec.dropout)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.from_stream, self.from_context = nn.Linear(width, width), nn.Linear(width, width)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                xavier(module)
        self.asking_norm, self.found_norm, self.context_norm = (nn.LayerNorm(width) for _ in range(3))
        self.drop = Dropout(spec.dropout)

    def plan(self, states: Tensor, mask: Tensor) -> Plan:
        """Of states [S, K, C, d]; a sentence's key is of the mean of its words."""
        real = mask[..., None].to(states.dtype)
        means = (states * real).sum(2) / real.sum(2).clamp(min=1)  # [S, K, d]
        sentences = split_heads(self.sentence_key(means), self.heads)
        words = self.to_words.keys_and_values(states.flatten(1, 2)).unflatten(3, mask.shape[1:])
        return Plan(sentences, words[:, 0], words[:, 1], mask)

    def forward(self, x: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
        """x [S, N, d] -> context [S, N, d], shares of sentences [S, H, N, K] and of words in all [S, H, N, K, C]."""
        asking = self.asking_norm(x)
        sentences = scaled(split_heads(self.sentence_query(asking), self.heads))
        words = scaled(split_heads(self.to_words.query(asking), self.heads))
        present = plan.mask.any(2)[:, None, None]
        chosen = shared(sentences @ plan.sentences.transpose(-1, -2), present, self.options.over_sentences)
        energies = (words @ plan.words.flatten(2, 3).transpose(-1, -2)).unflatten(-1, plan.mask.shape[1:])
        within = shared(energies, plan.mask[:, None, None], self.options.over_words)
        shares = chosen[..., None] * within
        found = join_heads(shares.flatten(-2).to(plan.values.dtype) @ plan.values.flatten(2, 3))
        found = self.found_norm(self.to_words.output(found))
        hidden = self.drop(torch.relu(self.expand(found)))
        return self.context_norm(self.contract(hidden)), chosen, shares

    def gate(self, x: Tensor, context: Tensor) -> Tensor:
        return torch.sigmoid(self.from_stream(x) + self.from_context(context))


def scaled(queries: Tensor) -> Tensor:
    """Queries [..., e] over the square root of their width."""
    return queries * queries.shape[-1] ** -0.5


@wide
def shared(energies: Tensor, mask: Tensor, kind: Distribution) -> Tensor:
    """A distribution over the last axis among what is real by the mask; zeros where nothing is."""
    if kind == "sparsemax":
        return sparsemax(energies, mask.expand(energies.shape))
    shares = torch.softmax(energies.masked_fill(~mask, torch.finfo(energies.dtype).min), dim=-1)
    return shares * mask


class SelectiveAttention(OverStacks):
    """SAN on the encoder's output over sources before, on the decoder's over translations before, or both."""

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

    def read(self, batch: Batch, own: MechanismState) -> dict[str, Tensor]:
        """Which words are no </s>: those alone are looked at."""
        context = batch.context
        if context is None:
            raise ValueError("a batch for selective attention has a context, of absent sentences if need be")
        own.notes["encoder.are_words"] = context.words != EOS
        if context.outputs is not None:
            own.notes["decoder.are_words"] = context.outputs != EOS
        return {}

    def plan(self, side: Side, states: Tensor, mask: Tensor, own: MechanismState) -> dict[str, Tensor]:
        """The `Plan` of the words alone, and the mask [S, K, C] that has </s> too: a trace's order."""
        plan = self.look[side].plan(states, mask & own.notes[f"{side}.are_words"])
        return {**plan._asdict(), "order": mask}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own: MechanismState) -> Tensor:
        side, look = view.side, self.look[view.side]
        held = self.held(own, side)
        plan = Plan(*(held[name] for name in Plan._fields))
        context, chosen, shares = look(x, plan)
        gate = look.gate(x, context)
        real = plan.mask.any(1).any(1)
        position, axis = POSITIONS[side], CONTEXT_AXIS[side]
        own.record(f"{side}.sentence_attention", ("head", position, "distance"), chosen)
        own.record(
            f"{side}.attention",
            ("head", position, axis),
            lambda: by_word(WordOrder.of(held["order"], self.context.after), shares),
        )
        own.record(f"{side}.gate", (position,), lambda: ((1 - gate) * real[:, None, None]).mean(-1))
        return only_where(real, gate * x + (1 - gate) * context, x)
