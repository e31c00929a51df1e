"""RNNSearch (Bahdanau 2015, in the conditional-GRU form of Nematus): bidirectional encoder, recurrent decoder.

    s'_t = GRU1(s_{t-1}, E[y_{t-1}]);  c_t = attention(s'_t, h);  s_t = GRU2(s'_t, c_t)
    read = tanh(W1 s_t + W2 E[y_{t-1}] + W3 c_t);  p = softmax(Wo read + b)

Offers the hook points of attention besides READOUT and OUTPUT. Computations independent of the recurrence are outside
the loop: in a forced pass the input words before it, inputs of deeper layers, readout and weight gradients after it; in
a search the maps of c_t, a weighted mean of annotations, are applied to the annotations once and the images averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.profiler import record_function

from core_models.backbones.recurrent_encoder import TransformerEncoder, read, read_both_ways
from core_models.config import ModelConfig
from core_models.interface.mechanism import BackboneSpec, HookPoint, View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.layers.dropout import Dropout
from core_models.layers.embeddings import embedding_tables
from core_models.layers.recurrent import CELLS, RECURRENCE, AdditiveAttention, RecurrentCell


class RNNSearch(nn.Module):
    """RNNSearch with embeddings of width e, states d = config.d_model, memory m = 2 d; the head reads width e.

    `deep_layers` are further recurrent layers without attention, each on [s_t; c_t] and added to s_t (Zheng 2018,
    RNNSEARCH-2DEC and -3DEC); the first layer does not depend on them.
    """

    target_room = math.inf  # maximal number of target positions

    def __init__(self, config: ModelConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        width, embedding, cell = config.d_model, config.embedding, CELLS[config.rnn_cell]
        tables = embedding_tables(config, source_words, target_words, embedding)
        self.source_table, self.target_table, self.vocabulary = tables
        self.vocabulary_bias = nn.Parameter(torch.zeros(target_words))
        self.memory_width = width if config.encoder == "transformer" else 2 * width
        if config.encoder == "transformer":
            self.source_layers = TransformerEncoder(config)
        else:
            self.forward_unit, self.backward_unit = cell(embedding, width), cell(embedding, width)
        self.first_state: nn.Linear | None = nn.Linear(self.memory_width, width)  # None if nothing reads the summary
        self.word_unit, self.context_unit = cell(embedding, width), cell(self.memory_width, width)
        self.attention = AdditiveAttention(width, self.memory_width, config.attention_width or width)
        self.deep = nn.ModuleList(cell(width + self.memory_width, width) for _ in range(config.deep_layers))
        self.read_state = nn.Linear(width, embedding)
        self.read_word = nn.Linear(embedding, embedding, bias=False)
        self.read_context = nn.Linear(self.memory_width, embedding, bias=False)
        self.drop = Dropout(config.dropout)
        self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        for module in self.modules():
            if isinstance(module, RecurrentCell):
                module.initialize()

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.vocabulary.weight, self.vocabulary_bias

    @staticmethod
    def attention_maps(config: ModelConfig) -> dict[str, tuple[int, int]]:
        """Layers and heads of each attention in a trace, by name; deeper layers of the decoder have none."""
        encoder = {"encoder.self_attention": (config.encoder_layers, config.heads)}
        return {"decoder.cross_attention": (1, 1)} | (encoder if config.encoder == "transformer" else {})

    def spec(self) -> BackboneSpec:
        config, width, embedding = self.config, self.config.d_model, self.config.embedding
        transformer = config.encoder == "transformer"
        hook_points = {hook_point for hook_point in HookPoint if not hook_point.name.startswith(("ENCODER", "DECODER"))}
        hook_points.add(HookPoint.ENCODER_STACK_OUTPUT)
        if transformer:
            hook_points |= {HookPoint.ENCODER_LAYER_INPUT, HookPoint.ENCODER_SUBLAYER}
        widths = {
            "embedding": embedding,
            "stream": width,
            "memory": self.memory_width,
            "state": embedding,
            "guide": width + self.memory_width,
            "readout": embedding,
            "output": embedding,
            "context": self.memory_width,
            "energy": config.attention_width or width,
            "transition": self.context_unit.gates * width,
        }
        return BackboneSpec(
            hook_points=frozenset(hook_points),
            layers={"encoder": config.encoder_layers if transformer else 1, "decoder": 1},
            heads=config.heads if transformer else 1,
            widths=widths,
            source_embedding=self.source_table.__call__,
            target_embedding=self.target_table.__call__,
            vocabulary_size=self.vocabulary.num_embeddings,
            final_norm=transformer and config.norm == "pre",
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            output_matrix=lambda: self.output_matrix,
            tied=config.tie_embeddings != "none",
            summary=self.summarize,
        )

    def encode(self, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Encode source words [S, I] with mask [S, I] -> annotations [S, I, m]."""
        embedded = self.source_table(words)
        if self.config.encoder == "transformer":
            return self.source_layers(embedded, words, mask, active)
        embedded = self.drop(embedded)
        view = View("encoder").show(mask=mask, words=words, embedded=embedded)
        annotations = self.drop(read_both_ways(self.forward_unit, self.backward_unit, embedded, mask))
        return active.at(HookPoint.ENCODER_STACK_OUTPUT, annotations, view)

    def summarize(self, memory: Tensor, mask: Tensor) -> Tensor:
        """Summary tanh(W mean_i h_i) over real words, or of both ends as in Zheng 2018, Eq. 5 (D5): -> [S, d]."""
        assert self.first_state is not None  # every reader of the summary declares it: Mechanism.reads_summary
        if self.config.summary == "end_states":
            last = (mask.sum(1) - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.config.d_model)
            ahead = memory[..., : self.config.d_model].gather(1, last)[:, 0]
            return torch.tanh(self.first_state(torch.cat([ahead, memory[:, 0, self.config.d_model :]], dim=-1)))
        real = mask[..., None].to(memory.dtype)
        return torch.tanh(self.first_state((memory * real).sum(1) / real.sum(1).clamp(min=1)))

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Attention keys, and the initial state s_0 of every decoder layer."""
        zero = memory.new_zeros(len(memory), self.config.d_model)
        hidden = zero if self.config.decoder_init == "zero" else self.summarize(memory, mask)
        first = self.context_unit.first(hidden)
        return {"memory": memory, "keys": self.attention.keys(memory), "first": first[:, None]}

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms, fixed: FixedShapes | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Images of the annotations under all maps of the attended context [S, I, ...]; initial states [S, 1, ...].

        Shapes are fixed whether asked or not.
        """
        maps = [self.context_unit.from_input, self.read_context, *active.attended_maps]
        first_states = {"state": sentence["first"]}
        if self.deep:
            first_states["deep"] = sentence["first"][:, :, None].expand(-1, -1, len(self.deep), -1).contiguous()
        return {"images": torch.cat([linear(sentence["memory"]) for linear in maps], dim=-1)}, first_states

    def _advance(
        self,
        projected: Tensor,
        state: Tensor,
        sentence: Mapping[str, Tensor],
        memory_mask: Tensor,
        view: View,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, Tensor | None]:
        """One position: projected word [S, N, 3 d] and s_{t-1} [S, N, d] -> s_t, and in a search W3 c_t [S, N, e]."""
        before = self.word_unit.hidden(state)
        (recurrent,) = active.linear([self.word_unit.from_state], before)
        state = self.word_unit.combine(projected, recurrent, state)
        query = active.at(HookPoint.BEFORE_ATTENTION, self.word_unit.hidden(state), view.show(previous=before))
        state = self.word_unit.with_hidden(state, query)
        query_image, recurrent = active.linear([self.attention.query, self.context_unit.from_state], query)
        summed = query_image[:, :, None] + sentence["keys"][:, None]
        summed = active.at(HookPoint.ENERGY, summed, view.show(query=query))
        weights = self.attention.weights(summed, memory_mask)
        shares = weights.to(sentence["memory"].dtype)
        view.show(weights=weights, context=partial(torch.matmul, shares, sentence["memory"]))
        transition, read_context = self._attend(shares, sentence, view, active)
        transition = active.at(HookPoint.TRANSITION, transition, view)
        state = self.context_unit.combine(transition, recurrent, state)
        after = active.at(HookPoint.AFTER_ATTENTION, self.context_unit.hidden(state), view)
        return self.context_unit.with_hidden(state, after), read_context

    def _attend(
        self, shares: Tensor, sentence: Mapping[str, Tensor], view: View, active: ActiveMechanisms
    ) -> tuple[Tensor, Tensor | None]:
        """Images of c_t for the unit after the attention, for the mechanisms and, in a search, for the readout."""
        from_input = self.context_unit.from_input
        if "images" not in sentence:
            transition, *images = active.linear([from_input, *active.attended_maps], view.context)
            active.attend(images)
            return transition, None
        widths = [linear.out_features for linear in (from_input, self.read_context, *active.attended_maps)]
        transition, read_context, *images = (shares @ sentence["images"]).split(widths, dim=-1)
        active.attend(images)
        return transition, read_context

    def _read_out(
        self, hidden: Tensor, read_context: Tensor, embedded: Tensor, view: View, active: ActiveMechanisms
    ) -> Tensor:
        """The input of the vocabulary head, [S, N, e]."""
        readout = self.read_state(hidden) + self.read_word(embedded) + read_context
        view.show(guide=lambda: torch.cat([hidden, view.context], dim=-1))
        changed = active.at(HookPoint.READOUT, readout, view)
        view.show(state=lambda: torch.tanh(readout))
        return active.at(HookPoint.OUTPUT, self.drop(torch.tanh(changed)), view)

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, active: ActiveMechanisms
    ) -> tuple[Tensor, View]:
        """Force input words [S, T] -> [S, T, e]: a loop over T, then the readout of all positions at once."""
        embedded = self.drop(self.target_table(words))
        projected = self.word_unit.from_input(embedded).unsqueeze(2).unbind(1)  # of [S, 1, 3 d]
        shown = {"memory": sentence["memory"], "memory_mask": memory_mask}
        state, states, views = sentence["first"], list[Tensor](), list[View]()
        active.recur(len(projected))
        with record_function(RECURRENCE):
            for position, word in enumerate(projected):
                columns = slice(position, position + 1)
                view = View("decoder").show(mask=mask[:, columns], words=words[:, columns], **shown)
                view.show(embedded=partial(torch.narrow, embedded, 1, position, 1))
                state, _ = self._advance(word, state, sentence, memory_mask, view, active)
                states.append(self.context_unit.hidden(state))
                views.append(view)
                active.advance()
        active.gather()
        hidden, context, weights = (
            torch.cat(part, dim=1)
            for part in (states, [view.context for view in views], [view.weights for view in views])
        )
        axes = ("layer", "head", "target", "source")
        active.record("decoder.cross_attention", axes, weights[:, None, None], "source")
        first = sentence["first"][:, 0]
        for unit in self.deep:
            hidden = hidden + read(unit, torch.cat([hidden, context], dim=-1), first, None)
        view = View("decoder").show(
            mask=mask, words=words, embedded=embedded, weights=weights, context=context, **shown
        )
        return self._read_out(hidden, self.read_context(context), embedded, view, active), view

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: Mapping[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, e] and the new states."""
        embedded = self.drop(self.target_table(words))
        view = View("decoder").show(
            mask=None, words=words, embedded=embedded, memory=sentence["memory"], memory_mask=memory_mask
        )
        projected = self.word_unit.from_input(embedded)
        state, read_context = self._advance(projected, hypothesis["state"], sentence, memory_mask, view, active)
        stepped, hidden = {"state": state}, self.context_unit.hidden(state)
        if self.deep:
            hidden, stepped["deep"] = self._deepen(hidden, hypothesis["deep"], view.context)
        assert read_context is not None  # `start` has computed the images
        return self._read_out(hidden, read_context, embedded, view, active), stepped, view

    def _deepen(self, hidden: Tensor, states: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Step the deeper layers: [S, K, d], their states [S, K, layers, ...] -> the sum and the new states."""
        stepped = []
        for unit, state in zip(self.deep, states.unbind(2), strict=True):
            state = unit(unit.from_input(torch.cat([hidden, context], dim=-1)), state)
            hidden = hidden + unit.hidden(state)
            stepped.append(state)
        return hidden, torch.stack(stepped, dim=2)
