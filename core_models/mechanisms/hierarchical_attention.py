"""Hierarchical attention (Miculicich 2018): each position looks at the words of every sentence before, then at those.

Of each sentence k before, attention over its states gives one vector; attention over these K vectors, a feed-forward
part and a gate give the context of the position: (1 - l) x + l c, l = sigmoid(W [x; c]). On the encoder's output the
states are of the sources before, on the decoder's of the translations before. They are given, not learned through.
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


class Looked(NamedTuple):
    """What positions found, [S, N, d], and whom they asked: words [S, H, N, K, C] and sentences [S, H, N, K]."""

    context: Tensor
    words: Tensor | None
    sentences: Tensor | None


class WordsThenSentences(nn.Module):
    """Attention over the words of each sentence, then over the sentences, from positions [S, N, d]."""

    def __init__(self, spec: BackboneSpec, width: int, states: int, hidden: int) -> None:
        super().__init__()
        self.words = CrossAttention(width, states, spec.heads, spec.dropout)
        self.sentences = CrossAttention(width, width, spec.heads, spec.dropout)
        self.expand, self.contract = nn.Linear(width, hidden), nn.Linear(hidden, width)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                xavier(module)
        self.word_norm, self.sentence_norm, self.vector_norm, self.feed_forward_norm = (
            nn.LayerNorm(width) for _ in range(4)
        )
        self.drop = Dropout(spec.dropout)

    def keys_and_values(self, states: Tensor) -> Tensor:
        """States [S, K, C, d] -> [S, K, 2, H, C, e]."""
        return self.words.keys_and_values(states.flatten(0, 1)).unflatten(0, states.shape[:2])

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor, weights: bool) -> Looked:
        """x [S, N, d], keys of `keys_and_values`, mask [S, K, C]."""
        layer, (sentences, reach) = self.words, mask.shape[:2]
        query = split_heads(layer.query(self.word_norm(x)), layer.heads)  # one for the words of all sentences
        query = query[:, None].expand(-1, reach, -1, -1, -1).flatten(0, 1)  # [S K, H, N, e]
        key, value = keys.flatten(0, 1).unbind(1)
        seen, dropout = mask.flatten(0, 1)[:, None, None], layer.dropout if self.training else 0.0
        mixed, words = attend(query, key, value, seen, False, dropout, weights)
        found = self.vector_norm(layer.output(join_heads(mixed)))
        vectors = found.unflatten(0, (sentences, reach)).transpose(1, 2)  # [S, N, K, d]
        context, shares = self._over_sentences(self.sentence_norm(x), vectors, mask.any(2), weights)
        hidden = self.drop(torch.relu(self.expand(self.feed_forward_norm(context))))
        context = context + self.drop(self.contract(hidden))
        if words is not None:
            words = words.unflatten(0, (sentences, reach)).permute(0, 2, 3, 1, 4)
        return Looked(context, words, shares)

    def _over_sentences(
        self, asking: Tensor, vectors: Tensor, present: Tensor, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Every position has vectors of its own to ask: positions [S, N, d] of [S, N, K, d], present [S, K]."""
        layer, (sentences, positions) = self.sentences, asking.shape[:2]
        query = split_heads(layer.query(asking).flatten(0, 1)[:, None], layer.heads)  # [S N, H, 1, e]
        key, value = layer.keys_and_values(vectors.flatten(0, 1)).unbind(1)  # [S N, H, K, e]
        mask = present.repeat_interleave(positions, 0)[:, None, None]
        dropout = layer.dropout if self.training else 0.0
        mixed, share = attend(query, key, value, mask, False, dropout, weights)
        found = layer.output(join_heads(mixed)).view(sentences, positions, -1)
        if share is not None:
            share = share[:, :, 0].unflatten(0, (sentences, positions)).transpose(1, 2)  # [S, H, N, K]
        return found, share


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
        # Where the stack ends in a norm, that one follows.
        self.after = nn.ModuleDict(
            {side: nn.Identity() if spec.final_norm else nn.LayerNorm(width[side]) for side in self.sides}
        )

    def plan(self, side: Side, states: Tensor, mask: Tensor, own: MechanismState) -> dict[str, Tensor]:
        """Keys and values of the states, [S, K, 2, H, C, e], and the mask [S, K, C]."""
        return {"keys": self.look[side].keys_and_values(states), "mask": mask}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own: MechanismState) -> Tensor:
        side: Side = view.side
        held = self.held(own, side)
        mask = held["mask"]
        names = [f"{side}.{name}" for name in ("word_attention", "sentence_attention", "attention")]
        looked = self.look[side](x, held["keys"], mask, any(map(own.wants, names)))
        self._record(looked, own, side, mask)
        share = torch.sigmoid(self.gate[side](torch.cat([x, looked.context], dim=-1)))
        own.record(f"{side}.gate", (POSITIONS[side],), lambda: (share * mask.any((1, 2))[:, None, None]).mean(-1))
        mixed = self.after[side]((1 - share) * x + share * looked.context)
        return only_where(mask.any((1, 2)), mixed, x)

    def _record(self, looked: Looked, own: MechanismState, side: Side, mask: Tensor) -> None:
        """Shares of words within their sentence, of sentences, and of words in all: what their product is, by head."""
        words, sentences = looked.words, looked.sentences
        if words is None or sentences is None:
            return
        position, axis = POSITIONS[side], CONTEXT_AXIS[side]
        order = WordOrder.of(mask)
        own.record(f"{side}.word_attention", ("head", position, axis), lambda: by_word(order, words))
        own.record(f"{side}.sentence_attention", ("head", position, "distance"), sentences)
        own.record(f"{side}.attention", ("head", position, axis), lambda: by_word(order, words * sentences[..., None]))
