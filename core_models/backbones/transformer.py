"""The Transformer (Vaswani 2017), pre- or post-norm: an encoder, and a decoder for forced passes and steps.

Calls the mechanisms at its hook points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from core_models.backbones.search_slots import first_slots, next_slots
from core_models.config import ModelConfig
from core_models.interface.mechanism import BackboneSpec, HookPoint, View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.layers.attention import CrossAttention, HeadsHook, SelfAttention
from core_models.layers.dropout import Dropout
from core_models.layers.embeddings import embedding_tables
from core_models.layers.positional_embedding import PositionalEmbedding

OutputHook = Callable[[Tensor, Tensor], Tensor]  # of a change [S, N, d] and the query [S, N, d] that found it
ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu, "silu": nn.functional.silu}


class Block(nn.Module):
    """Encoder layer, and base of decoder layers: residual connections, pre- or post-norm, feed-forward part."""

    # Methods that work on tensors alone and can be compiled.
    tensor_functions: ClassVar[tuple[str, ...]] = ("attend_to_itself", "feed_forward")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.activation = ACTIVATIONS[config.activation_function]
        self.attention = SelfAttention(config.d_model, config.heads, config.attention_dropout)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.expand = nn.Linear(config.d_model, config.ffn_dim)
        self.contract = nn.Linear(config.ffn_dim, config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.drop = Dropout(config.dropout)
        self.activation_drop = Dropout(config.activation_dropout)

    def enter(self, x: Tensor, norm: nn.Module) -> Tensor:
        return norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, change: Tensor, norm: nn.Module) -> Tensor:
        x = x + self.drop(change)
        return x if self.pre_norm else norm(x)

    def attend_to_itself(
        self, x: Tensor, mask: Tensor | None, causal: bool, need_weights: bool, heads_hook: HeadsHook | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The stream [S, N, d] after self-attention, and its weights as of `SelfAttention.forward`."""
        change, share = self.attention(self.enter(x, self.attention_norm), mask, causal, need_weights, heads_hook)
        return self.leave(x, change, self.attention_norm), share

    def feed_forward(self, x: Tensor) -> Tensor:
        hidden = self.activation_drop(self.activation(self.expand(self.enter(x, self.feed_forward_norm))))
        return self.leave(x, self.contract(hidden), self.feed_forward_norm)


class DecoderBlock(Block):
    tensor_functions = (*Block.tensor_functions, "attend_to_memory")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.cross = CrossAttention(config.d_model, config.d_model, config.heads, config.attention_dropout)
        self.cross_norm = nn.LayerNorm(config.d_model)

    def attend_to_memory(
        self,
        x: Tensor,
        keys_and_values: Tensor,
        mask: Tensor,
        need_weights: bool,
        heads_hook: HeadsHook | None = None,
        output_hook: OutputHook | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """The stream [S, N, d] after attention to the memory, and its weights as of `CrossAttention.forward`.

        output_hook: what becomes of what was found, given what was asked.
        """
        query = self.enter(x, self.cross_norm)
        change, share = self.cross(query, keys_and_values, mask, need_weights, heads_hook)
        return self.leave(x, output_hook(change, query) if output_hook else change, self.cross_norm), share


def _normed_layers(layers: Sequence[Tensor], norm: nn.Module) -> Callable[[], list[Tensor]]:
    """A function that returns the layers computed so far, each through the norm once."""
    read: list[Tensor] = []

    def layers_so_far() -> list[Tensor]:
        read.extend(norm(h) for h in layers[len(read) :])
        return list(read)

    return layers_so_far


def _heads_hook(hook_point: HookPoint, view: View, active: ActiveMechanisms) -> HeadsHook | None:
    """What mechanisms make of the heads at a hook point, or None if there are none."""
    return (lambda heads: active.at(hook_point, heads, view)) if active.any_at(hook_point) else None


def _output_hook(view: View, active: ActiveMechanisms) -> OutputHook | None:
    """What mechanisms make of what the attention to the memory found, or None if there are none."""
    if not active.any_at(HookPoint.DECODER_CROSS):
        return None
    return lambda change, query: active.at(HookPoint.DECODER_CROSS, change, view.show(query=query))


def _decoder_hooks(
    view: View, active: ActiveMechanisms
) -> tuple[HeadsHook | None, HeadsHook | None, OutputHook | None]:
    """What mechanisms make of the heads of self-attention, of those of cross-attention, and of what that found."""
    self_hook = _heads_hook(HookPoint.DECODER_HEADS, view, active)
    return self_hook, _heads_hook(HookPoint.DECODER_CROSS_HEADS, view, active), _output_hook(view, active)


def encode_stack(
    x: Tensor,
    words: Tensor,
    mask: Tensor,
    blocks: Iterable[Block],
    norm: nn.Module,
    active: ActiveMechanisms,
    recorded: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Apply encoder layers and the final norm to embedded source words [S, I, d] -> memory [S, I, d].

    recorded: what a trace keeps of the attention weights [S, layers, H, I, I], if not these.
    """
    layers, shares = [x], []
    view = View("encoder").show(mask=mask, words=words, embedded=x)
    read = _normed_layers(layers, norm)
    records_attention = active.wants("encoder.self_attention")
    heads_hook = _heads_hook(HookPoint.ENCODER_HEADS, view, active)
    for number, block in enumerate(blocks):
        x = active.at(HookPoint.ENCODER_LAYER_INPUT, x, view.show(layer=number, layers=read))
        x, share = block.attend_to_itself(x, mask, False, records_attention, heads_hook)
        x = active.at(HookPoint.ENCODER_SUBLAYER, x, view)
        x = block.feed_forward(x)
        layers.append(x)
        shares.append(share)
    if records_attention:
        axes = ("layer", "head", "source", "source_key")
        weights = torch.stack(shares, 1)
        active.record("encoder.self_attention", axes, recorded(weights) if recorded else weights, "source_key")
    return norm(active.at(HookPoint.ENCODER_STACK_OUTPUT, x, view.show(layers=read)))


class Transformer(nn.Module):
    """Encoder and decoder stacks with their embeddings.

    All streams have width d = config.d_model. The encoder turns words [S, I] into a memory [S, I, d]; the decoder reads
    words [S, T] when forced, or [S, K] at one position when stepped, and returns the input of the vocabulary head.
    """

    def __init__(self, config: ModelConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        tables = embedding_tables(config, source_words, target_words, width)
        self.source_table, self.target_table, self.vocabulary = tables
        self.source_positions = PositionalEmbedding(width, config.position_embedding == "learned", config.max_positions)
        self.target_positions = PositionalEmbedding(width, config.position_embedding == "learned", config.max_positions)
        self.encoder = nn.ModuleList(Block(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        final = nn.LayerNorm if config.norm == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = final(width), final(width)
        self.embedding_scale = math.sqrt(width)
        self.drop = Dropout(config.dropout)
        self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)

    @property
    def target_room(self) -> float:
        """The maximal number of target positions: the rows of a learned table."""
        learned = self.target_positions.learned
        return math.inf if learned is None else len(learned)

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.vocabulary.weight, None

    @staticmethod
    def attention_maps(config: ModelConfig) -> dict[str, tuple[int, int]]:
        """Layers and heads of each attention in a trace, by name."""
        decoder = dict.fromkeys(("decoder.self_attention", "decoder.cross_attention"), config.decoder_layers)
        layers = {"encoder.self_attention": config.encoder_layers, **decoder}
        return {name: (count, config.heads) for name, count in layers.items()}

    def spec(self) -> BackboneSpec:
        width = self.config.d_model
        names = ("embedding", "stream", "memory", "state", "guide", "readout", "output")
        recurrent = {HookPoint.BEFORE_ATTENTION, HookPoint.ENERGY, HookPoint.TRANSITION, HookPoint.AFTER_ATTENTION}
        hook_points = frozenset(HookPoint) - recurrent
        return BackboneSpec(
            hook_points=hook_points,
            layers={"encoder": len(self.encoder), "decoder": len(self.decoder)},
            heads=self.config.heads,
            widths={**dict.fromkeys(names, width), "head": width // self.config.heads},
            source_embedding=self.source_table.__call__,
            target_embedding=self.target_table.__call__,
            vocabulary_size=self.vocabulary.num_embeddings,
            final_norm=self.config.norm == "pre",
            dropout=self.config.dropout,
            attention_dropout=self.config.attention_dropout,
            encoder_layer=lambda: Block(self.config),
            output_matrix=lambda: self.output_matrix,
            tied=self.config.tie_embeddings != "none",
        )

    def leave_out_map(self, hook_point: HookPoint, layer: int) -> None:
        """Drop the output map of the attention at a hook point of heads: a mechanism replaces it."""
        block = (self.encoder if hook_point is HookPoint.ENCODER_HEADS else self.decoder)[layer]
        (block.cross if hook_point is HookPoint.DECODER_CROSS_HEADS else block.attention).output = None

    def _embed(self, table: nn.Embedding, words: Tensor, positions: Tensor) -> Tensor:
        return self.drop(table(words) * self.embedding_scale + positions)

    def _embed_source(self, words: Tensor) -> Tensor:
        return self._embed(self.source_table, words, self.source_positions(0, words.shape[1]))

    def _embed_target(self, words: Tensor, positions: Tensor) -> Tensor:
        return self._embed(self.target_table, words, positions)

    def encode(self, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Encode source words [S, I] with mask [S, I] -> memory [S, I, d]."""
        x = self._embed_source(words)
        return encode_stack(x, words, mask, self.encoder, self.encoder_norm, active)

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Keys and values of every decoder layer over the memory: [S, layers, 2, H, I, e]."""
        return {
            "memory": memory,
            "cross": torch.stack([block.cross.keys_and_values(memory) for block in self.decoder], dim=1),
        }

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, active: ActiveMechanisms
    ) -> tuple[Tensor, View]:
        """Force input words [S, T] -> the input of the vocabulary head [S, T, d], and the final view."""
        x = self._embed_target(words, self.target_positions(0, words.shape[1]))
        view = View("decoder").show(
            mask=mask, words=words, embedded=x, memory=sentence["memory"], memory_mask=memory_mask
        )
        records_self, records_cross = active.wants("decoder.self_attention"), active.wants("decoder.cross_attention")
        self_shares, cross_shares = [], []
        self_hook, cross_hook, output_hook = _decoder_hooks(view, active)

        def self_attention(number: int, x: Tensor) -> Tensor:
            x, share = self.decoder[number].attend_to_itself(x, None, True, records_self, self_hook)
            self_shares.append(share)
            return x

        def cross_attention(number: int, x: Tensor) -> Tensor:
            kept = sentence["cross"][:, number]
            x, share = self.decoder[number].attend_to_memory(
                x, kept, memory_mask, records_cross, cross_hook, output_hook
            )
            cross_shares.append(share)
            return x

        x = self._decode(x, view, active, self_attention, cross_attention)
        if records_self:
            shares = self._target_shares(torch.stack(self_shares, 1))
            active.record("decoder.self_attention", ("layer", "head", "target", "target_key"), shares, "target_key")
        if records_cross:
            shares = self._source_shares(torch.stack(cross_shares, 1), memory_mask)
            active.record("decoder.cross_attention", ("layer", "head", "target", "source"), shares, "source")
        return x, view

    def _target_shares(self, shares: Tensor) -> Tensor:
        """What a trace keeps of self-attention weights [S, layers, H, T, T] of the decoder."""
        return shares

    def _source_shares(self, shares: Tensor, memory_mask: Tensor) -> Tensor:
        """What a trace keeps of cross-attention weights [S, layers, H, T, I]."""
        return shares

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms, fixed: FixedShapes | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Slots for the keys and values of a search and the first state, see `search_slots`."""
        if fixed is not None:
            self.target_positions.rows(fixed.steps if self.target_positions.learned is None else 0)
        width = self.config.d_model // self.config.heads
        return first_slots(sentence["memory"], len(self.decoder), self.config.heads, width, fixed)

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: dict[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, d] and its state; fills slots in place."""
        places, stepped = next_slots(sentence, hypothesis, words.shape[1])
        slots, seen = sentence["slots"], stepped["seen"]
        x = self._embed_target(words, self._target_position(position, hypothesis))
        view = View("decoder").show(
            mask=None, words=words, embedded=x, memory=sentence["memory"], memory_mask=memory_mask
        )

        self_hook, cross_hook, output_hook = _decoder_hooks(view, active)

        def self_attention(number: int, x: Tensor) -> Tensor:
            block = self.decoder[number]
            entering = block.enter(x, block.attention_norm)
            change = block.attention.step(entering, slots[:, number], places, seen, self_hook)
            return block.leave(x, change, block.attention_norm)

        def cross_attention(number: int, x: Tensor) -> Tensor:
            kept = sentence["cross"][:, number]
            return self.decoder[number].attend_to_memory(x, kept, memory_mask, False, cross_hook, output_hook)[0]

        return self._decode(x, view, active, self_attention, cross_attention), stepped, view

    def _target_position(self, position: int, hypothesis: Mapping[str, Tensor]) -> Tensor:
        """The row of one position, [1, d]; by the number that the device has, if it has one."""
        if "position" not in hypothesis:
            return self.target_positions(position, position + 1)
        table = self.target_positions.rows(0)  # long enough from the start
        return table.index_select(0, hypothesis["position"][0, :1])

    def _decode(self, x: Tensor, view: View, active: ActiveMechanisms, self_attention, cross_attention) -> Tensor:
        """The decoder stack over N positions, with the two attention sublayers of a forced pass or a step."""
        layers = [x]
        read = _normed_layers(layers, self.decoder_norm)
        for number, block in enumerate(self.decoder):
            x = active.at(HookPoint.DECODER_LAYER_INPUT, x, view.show(layer=number, layers=read))
            x = active.at(HookPoint.DECODER_SUBLAYER, self_attention(number, x), view)
            x = block.feed_forward(cross_attention(number, x))
            layers.append(x)
        x = active.at(HookPoint.DECODER_STACK_OUTPUT, x, view.show(layers=read))
        view.show(guide=x)
        guide, x = x, active.at(HookPoint.READOUT, x, view)
        output = self.decoder_norm(x)
        view.show(state=(lambda: self.decoder_norm(guide)) if active.any_at(HookPoint.READOUT) else output)
        return active.at(HookPoint.OUTPUT, output, view)
