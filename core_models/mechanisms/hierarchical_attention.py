"""Hierarchical attention (Miculicich 2018): from positions to the words of context sentences, then to the sentences.

Attention over the states of context sentence k gives one vector; attention over these K vectors, a feed-forward layer
and a gate give the context of the position: (1 - l) x + l c, l = sigmoid(W [x; c]). The encoder attends to the states
of context sources, the decoder to those of context translations. No gradient passes into these states.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, MechanismState, View
from core_models.layers.attention import CrossAttention, attend, join_heads, split_heads
from core_models.layers.dropout import Dropout
from core_models.mechanisms.document_context import (
    CONTEXT_AXIS,
    OverStacks,
    SidedOptions,
    by_word,
    only_where,
    xavier,
)
from core_models.mechanisms.sides import POSITIONS, Side
from core_models.text.batches import WordOrder


class Attended(NamedTuple):
    """The context of positions [S, N, d] with its weights over words [S, H, N, K, C] and sentences [S, H, N, K]."""

    context: Tensor
    words: Tensor | None
    sentences: Tensor | None


class WordsThenSentences(nn.Module):
    """Attention over the words of each sentence, then over the sentences, from positions [S, N, d]."""

    def __init__(self, spec: BackboneSpec, width: int, states: int, hidden: int) -> None:
        super().__init__()
        self.words = CrossAttention(width, states, spec.heads, spec.attention_dropout)
        self.sentences = CrossAttention(width, width, spec.heads, spec.attention_dropout)
        self.expand, self.contract = nn.Linear(width, hidden), nn.Linear(hidden, width)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                xavier(module)
        self.word_norm, self.sentence_norm, self.vector_norm, self.feed_forward_norm = (
            nn.LayerNorm(width) for _ in range(4)
        )
        self.drop = Dropout(spec.dropout)

    def keys_and_values(self, states: Tensor) -> Tensor:
        """Keys and values of states: [S, K, C, d] -> [S, K, 2, H, C, e]."""
        return self.words.keys_and_values(states.flatten(0, 1)).unflatten(0, states.shape[:2])

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor, need_weights: bool) -> Attended:
        """Attend from x [S, N, d] to keys from `keys_and_values`, mask [S, K, C]."""
        layer, (sentences, reach) = self.words, mask.shape[:2]
        query = split_heads(layer.query(self.word_norm(x)), layer.heads)  # one for the words of all sentences
        query = query[:, None].expand(-1, reach, -1, -1, -1).flatten(0, 1)  # [S K, H, N, e]
        key, value = keys.flatten(0, 1).unbind(1)
        seen, dropout = mask.flatten(0, 1)[:, None, None], layer.dropout if self.training else 0.0
        mixed, words = attend(query, key, value, seen, False, dropout, need_weights, may_be_empty=True)
        sentence_vectors = self.vector_norm(layer.output(join_heads(mixed)))
        vectors = sentence_vectors.unflatten(0, (sentences, reach)).transpose(1, 2)  # [S, N, K, d]
        context, shares = self._over_sentences(self.sentence_norm(x), vectors, mask.any(2), need_weights)
        hidden = self.drop(torch.relu(self.expand(self.feed_forward_norm(context))))
        context = context + self.drop(self.contract(hidden))
        if words is not None:
            words = words.unflatten(0, (sentences, reach)).permute(0, 2, 3, 1, 4)
        return Attended(context, words, shares)

    def _over_sentences(
        self, queries: Tensor, vectors: Tensor, present: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from positions [S, N, d], each to its own vectors [S, N, K, d], present [S, K]."""
        layer, (sentences, positions) = self.sentences, queries.shape[:2]
        query = split_heads(layer.query(queries).flatten(0, 1)[:, None], layer.heads)  # [S N, H, 1, e]
        key, value = layer.keys_and_values(vectors.flatten(0, 1)).unbind(1)  # [S N, H, K, e]
        mask = present.repeat_interleave(positions, 0)[:, None, None]
        dropout = layer.dropout if self.training else 0.0
        mixed, share = attend(query, key, value, mask, False, dropout, need_weights, may_be_empty=True)
        context = layer.output(join_heads(mixed)).view(sentences, positions, -1)
        if share is not None:
            share = share[:, :, 0].unflatten(0, (sentences, positions)).transpose(1, 2)  # [S, H, N, K]
        return context, share


class HierarchicalAttention(OverStacks):
    """HAN on the encoder's output, the decoder's, or both."""

    Options = SidedOptions

    def __init__(self, spec: BackboneSpec, options: SidedOptions) -> None:
        super().__init__(spec, options)
        width, states = self.widths, self.state_widths
        self.look = nn.ModuleDict(
            {side: WordsThenSentences(spec, width[side], states[side], 4 * width[side]) for side in self.sides}
        )
        self.gate = nn.ModuleDict({side: xavier(nn.Linear(2 * width[side], width[side])) for side in self.sides})
        # Pre-norm stacks end with a norm, which follows.
        self.after = nn.ModuleDict(
            {side: nn.Identity() if spec.final_norm else nn.LayerNorm(width[side]) for side in self.sides}
        )

    def plan(self, side: Side, states: Tensor, mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Keys and values of the states, [S, K, 2, H, C, e], and the mask [S, K, C]."""
        return {"keys": self.look[side].keys_and_values(states), "mask": mask}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        side: Side = view.side
        plan = self.plan_of(own_state, side)
        mask = plan["mask"]
        names = [f"{side}.{name}" for name in ("word_attention", "sentence_attention", "attention")]
        attended = self.look[side](x, plan["keys"], mask, any(map(own_state.wants, names)))
        self._record(attended, own_state, side, mask)
        share = torch.sigmoid(self.gate[side](torch.cat([x, attended.context], dim=-1)))
        own_state.record(f"{side}.gate", (POSITIONS[side],), lambda: (share * mask.any((1, 2))[:, None, None]).mean(-1))
        mixed = self.after[side]((1 - share) * x + share * attended.context)
        return only_where(mask.any((1, 2)), mixed, x)

    def _record(self, attended: Attended, own_state: MechanismState, side: Side, mask: Tensor) -> None:
        """Record the weights of words within their sentence, of sentences, and their product, by head."""
        words, sentences = attended.words, attended.sentences
        if words is None or sentences is None:
            return
        position, axis = POSITIONS[side], CONTEXT_AXIS[side]
        order = WordOrder.of(mask)
        own_state.record(f"{side}.word_attention", ("head", position, axis), lambda: by_word(order, words))
        own_state.record(f"{side}.sentence_attention", ("head", position, "distance"), sentences)
        own_state.record(
            f"{side}.attention", ("head", position, axis), lambda: by_word(order, words * sentences[..., None])
        )
