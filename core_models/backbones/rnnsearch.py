"""RNNSearch (Bahdanau 2015, in the conditional-GRU form of Nematus): a bidirectional GRU encoder, a decoder that steps.

    s'_t = GRU1(s_{t-1}, E[y_{t-1}]);  c_t = attention(s'_t, h);  s_t = GRU2(s'_t, c_t)
    read = tanh(W1 s_t + W2 E[y_{t-1}] + W3 c_t);  p = softmax(Wo read + b)

Offers the three attention places besides READOUT and OUTPUT; what does not depend on the recurrence is done outside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from core_models.backbones.dropout import Dropout
from core_models.backbones.embeddings import embedding_tables
from core_models.backbones.guests import Guests
from core_models.backbones.recurrent import AdditiveAttention, GatedUnit
from core_models.config import ModelConfig
from core_models.mechanisms.base import Host, Place, View


class RNNSearch(nn.Module):
    """Widths: embeddings e, states d = config.width, memory 2 d; the head reads vectors of width e."""

    def __init__(self, config: ModelConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        width, embedding = config.width, config.embedding
        tables = embedding_tables(config, source_words, target_words, embedding)
        self.source_table, self.target_table, self.vocabulary = tables
        self.vocabulary_bias = nn.Parameter(torch.zeros(target_words))
        self.forward_unit, self.backward_unit = GatedUnit(embedding, width), GatedUnit(embedding, width)
        self.first_state = nn.Linear(2 * width, width)
        self.word_unit, self.context_unit = GatedUnit(embedding, width), GatedUnit(2 * width, width)
        self.attention = AdditiveAttention(width, 2 * width, width)
        self.read_state = nn.Linear(width, embedding)
        self.read_word = nn.Linear(embedding, embedding, bias=False)
        self.read_context = nn.Linear(2 * width, embedding, bias=False)
        self.drop = Dropout(config.dropout)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        for unit in (self.forward_unit, self.backward_unit, self.word_unit, self.context_unit):
            for part in unit.from_state.weight.chunk(3):
                nn.init.orthogonal_(part)

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.vocabulary.weight, self.vocabulary_bias

    def host(self) -> Host:
        width, embedding = self.config.width, self.config.embedding
        places = frozenset(
            {
                Place.BEFORE_ATTENTION,
                Place.ENERGY,
                Place.AFTER_ATTENTION,
                Place.READOUT,
                Place.OUTPUT,
                Place.ENCODER_STACK_OUTPUT,
            }
        )
        widths = {
            "embedding": embedding,
            "stream": width,
            "memory": 2 * width,
            "state": embedding,
            "guide": 3 * width,
            "readout": embedding,
            "output": embedding,
            "context": 2 * width,
            "energy": width,
        }
        return Host(
            places=places,
            layers={"encoder": 1, "decoder": 1},
            heads=1,
            widths=widths,
            source_embedding=self.source_table.__call__,
            target_embedding=self.target_table.__call__,
            vocabulary_size=self.vocabulary.num_embeddings,
            dropout=self.config.dropout,
        )

    def encode(self, words: Tensor, mask: Tensor, guests: Guests) -> Tensor:
        """Source words [S, I] with mask [S, I] -> annotations [S, I, 2 d]; padding keeps the state as it was."""
        embedded = self.drop(self.source_table(words))
        view = View("encoder").show(mask=mask, words=words, embedded=embedded)
        ahead = self._read(self.forward_unit, embedded, mask, range(words.shape[1]))
        back = self._read(self.backward_unit, embedded, mask, range(words.shape[1] - 1, -1, -1))
        return guests.at(Place.ENCODER_STACK_OUTPUT, self.drop(torch.cat([ahead, back], dim=-1)), view)

    @staticmethod
    def _read(unit: GatedUnit, embedded: Tensor, mask: Tensor, order: range) -> Tensor:
        projected = unit.from_input(embedded)
        state = projected.new_zeros(len(embedded), projected.shape[-1] // 3)
        states: list[Tensor] = [state] * len(order)
        for position in order:
            states[position] = state = torch.where(mask[:, position, None], unit(projected[:, position], state), state)
        return torch.stack(states, dim=1)

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Attention keys, and s_0 = tanh(W mean_i h_i), the mean over real words (D5)."""
        real = mask[..., None].to(memory.dtype)
        first = torch.tanh(self.first_state((memory * real).sum(1) / real.sum(1).clamp(min=1)))
        return {"memory": memory, "keys": self.attention.keys(memory), "first": first[:, None]}

    def start(self, sentence: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """No further sentence tensors, and the first state [S, 1, d]."""
        return {}, {"state": sentence["first"]}

    def _advance(
        self,
        projected: Tensor,
        state: Tensor,
        sentence: Mapping[str, Tensor],
        memory_mask: Tensor,
        view: View,
        guests: Guests,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One position: projected word [S, N, 3 d] and s_{t-1} [S, N, d] -> s_t, c_t [S, N, 2 d], weights [S, N, I]."""
        query = guests.at(Place.BEFORE_ATTENTION, self.word_unit(projected, state), view)
        summed = self.attention.query(query)[:, :, None] + sentence["keys"][:, None]
        summed = guests.at(Place.ENERGY, summed, view.show(query=query))
        weights = self.attention.weights(summed, memory_mask)
        context = weights.to(sentence["memory"].dtype) @ sentence["memory"]
        state = self.context_unit(self.context_unit.from_input(context), query)
        state = guests.at(Place.AFTER_ATTENTION, state, view.show(weights=weights, context=context))
        return state, context, weights

    def _read_out(self, state: Tensor, context: Tensor, embedded: Tensor, view: View, guests: Guests) -> Tensor:
        """What the vocabulary head reads, [S, N, e]."""
        readout = self.read_state(state) + self.read_word(embedded) + self.read_context(context)
        view.show(guide=lambda: torch.cat([state, context], dim=-1), context=context)
        changed = guests.at(Place.READOUT, readout, view)
        view.show(state=lambda: torch.tanh(readout))
        return guests.at(Place.OUTPUT, self.drop(torch.tanh(changed)), view)

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, guests: Guests
    ) -> tuple[Tensor, View]:
        """Words that come in [S, T] -> [S, T, e]: a loop over T, and after it the readout of all at once."""
        embedded = self.drop(self.target_table(words))
        projected = self.word_unit.from_input(embedded)
        state = sentence["first"]
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for position in range(words.shape[1]):
            here = slice(position, position + 1)
            view = View("decoder").show(
                mask=mask[:, here],
                words=words[:, here],
                embedded=embedded[:, here],
                memory=sentence["memory"],
                memory_mask=memory_mask,
            )
            state, context, weights = self._advance(projected[:, here], state, sentence, memory_mask, view, guests)
            found.append((state, context, weights))
            guests.advance()
        guests.gather()
        states, contexts, shares = (torch.cat(part, dim=1) for part in zip(*found, strict=True))
        if guests.wants("decoder.cross_attention"):
            guests.record(
                "decoder.cross_attention", ("layer", "head", "target", "source"), shares[:, None, None], "source"
            )
        view = View("decoder").show(
            mask=mask,
            words=words,
            embedded=embedded,
            memory=sentence["memory"],
            memory_mask=memory_mask,
            weights=shares,
        )
        return self._read_out(states, contexts, embedded, view, guests), view

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: Mapping[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        guests: Guests,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """One position of every hypothesis: words [S, K] -> [S, K, e] and the new states."""
        embedded = self.drop(self.target_table(words))
        view = View("decoder").show(
            mask=None, words=words, embedded=embedded, memory=sentence["memory"], memory_mask=memory_mask
        )
        state, context, _ = self._advance(
            self.word_unit.from_input(embedded), hypothesis["state"], sentence, memory_mask, view, guests
        )
        return self._read_out(state, context, embedded, view, guests), {"state": state}, view
