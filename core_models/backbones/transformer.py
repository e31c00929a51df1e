"""The Transformer (Vaswani 2017), pre- or post-norm: an encoder, and a decoder for forced passes and steps.

Calls the mechanisms at its hook points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from core_models.config import ModelConfig
from core_models.interface.mechanism import BackboneSpec, HookPoint, View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.layers.attention import CrossAttention, OfHeads, SelfAttention
from core_models.layers.dropout import Dropout
from core_models.layers.embeddings import embedding_tables
from core_models.settings import ConfigError

FIRST_POSITIONS = 64  # initial rows of the table of sinusoids; a longer request doubles its length
FIRST_SLOTS = 128  # initial slots for keys and values per sentence in a search; doubled when they are full

ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu, "silu": nn.functional.silu}


class Positions(nn.Module):
    """Sinusoidal positions computed on demand, or a learned table of `longest` rows."""

    def __init__(self, width: int, learned: bool, longest: int) -> None:
        super().__init__()
        self.width = width
        self.learned = nn.Parameter(torch.randn(longest, width) * width**-0.5) if learned else None
        # Not a buffer: distributed training would broadcast the first process's table to others, whose tables may have
        # other lengths.
        self.table = self._sinusoids(0 if learned else FIRST_POSITIONS)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Positions:
        super()._apply(fn, recurse)
        self.table = fn(self.table)
        return self

    def _sinusoids(self, length: int) -> Tensor:
        position = torch.arange(length, dtype=torch.float64)[:, None]
        rate = torch.exp(torch.arange(0, self.width, 2, dtype=torch.float64) * (-math.log(10000.0) / self.width))
        table = torch.zeros(length, self.width, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)[:, : self.width // 2]
        return table.to(torch.get_default_dtype())

    def forward(self, start: int, stop: int) -> Tensor:
        """Rows [stop - start, width]. Raises ConfigError past the end of a learned table."""
        if self.learned is not None:
            if stop > len(self.learned):
                raise ConfigError(
                    f"a sequence of {stop} positions does not fit the {len(self.learned)} learned ones of this "
                    "model; shorten it or train with larger max_positions"
                )
            return self.learned[start:stop]
        if stop > len(self.table):
            self.table = self._sinusoids(2 * stop).to(self.table)
        return self.table[start:stop]


class Block(nn.Module):
    """Encoder layer, and base of decoder layers: residual connections, pre- or post-norm, feed-forward part."""

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

    def feed_forward(self, x: Tensor) -> Tensor:
        hidden = self.activation_drop(self.activation(self.expand(self.enter(x, self.feed_forward_norm))))
        return self.leave(x, self.contract(hidden), self.feed_forward_norm)


class DecoderBlock(Block):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.cross = CrossAttention(config.d_model, config.d_model, config.heads, config.attention_dropout)
        self.cross_norm = nn.LayerNorm(config.d_model)


def _normed_layers(layers: Sequence[Tensor], norm: nn.Module) -> Callable[[], list[Tensor]]:
    """A function that returns the layers computed so far, each through the norm once."""
    read: list[Tensor] = []

    def layers_so_far() -> list[Tensor]:
        read.extend(norm(h) for h in layers[len(read) :])
        return list(read)

    return layers_so_far


def _of_heads(hook_point: HookPoint, view: View, active: ActiveMechanisms) -> OfHeads | None:
    """What mechanisms make of the heads at a hook point, or None if there are none."""
    return (lambda heads: active.at(hook_point, heads, view)) if active.any_at(hook_point) else None


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
    of_heads = _of_heads(HookPoint.ENCODER_HEADS, view, active)
    for number, block in enumerate(blocks):
        x = active.at(HookPoint.ENCODER_LAYER_INPUT, x, view.show(layer=number, layers=read))
        asked = block.enter(x, block.attention_norm)
        change, share = block.attention(asked, mask, False, records_attention, of_heads)
        x = block.leave(x, change, block.attention_norm)
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
        self.source_positions = Positions(width, config.position_embedding == "learned", config.max_positions)
        self.target_positions = Positions(width, config.position_embedding == "learned", config.max_positions)
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
        of_self, of_cross = self._of_decoder_heads(view, active)

        def self_attention(number: int, x: Tensor) -> Tensor:
            change, share = self.decoder[number].attention(x, None, True, records_self, of_self)
            self_shares.append(share)
            return change

        def cross_attention(number: int, x: Tensor) -> Tensor:
            keys = sentence["cross"][:, number]
            change, share = self.decoder[number].cross(x, keys, memory_mask, records_cross, of_cross)
            cross_shares.append(share)
            return change

        x = self._decode(x, view, active, self_attention, cross_attention)
        if records_self:
            shares = self._target_shares(torch.stack(self_shares, 1))
            active.record("decoder.self_attention", ("layer", "head", "target", "target_key"), shares, "target_key")
        if records_cross:
            shares = self._source_shares(torch.stack(cross_shares, 1), memory_mask)
            active.record("decoder.cross_attention", ("layer", "head", "target", "source"), shares, "source")
        return x, view

    @staticmethod
    def _of_decoder_heads(view: View, active: ActiveMechanisms) -> tuple[OfHeads | None, OfHeads | None]:
        """What mechanisms make of the heads of self-attention and of cross-attention."""
        hook_points = HookPoint.DECODER_HEADS, HookPoint.DECODER_CROSS_HEADS
        of_self, of_cross = (_of_heads(hook_point, view, active) for hook_point in hook_points)
        return of_self, of_cross

    def _target_shares(self, shares: Tensor) -> Tensor:
        """What a trace keeps of self-attention weights [S, layers, H, T, T] of the decoder."""
        return shares

    def _source_shares(self, shares: Tensor, memory_mask: Tensor) -> Tensor:
        """What a trace keeps of cross-attention weights [S, layers, H, T, I]."""
        return shares

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Slots for the keys and values of a search, [S, layers, 2, H, slots, e], and `seen` [S, K, used slots].

        Every word of a sentence's beams fills its own slot for good: reordering beams only changes which slots a
        hypothesis sees, its past. Keys and values are never copied between beams.
        """
        memory, heads = sentence["memory"], self.config.heads
        shape = len(memory), len(self.decoder), 2, heads, FIRST_SLOTS, self.config.d_model // heads
        return {"slots": memory.new_empty(shape)}, {"seen": memory.new_zeros(len(memory), 1, 0, dtype=torch.bool)}

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: dict[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, d] and `seen`; fills slots in place."""
        beams = words.shape[1]
        used = hypothesis["seen"].shape[2]
        itself = torch.eye(beams, dtype=torch.bool, device=words.device).expand(len(words), -1, -1)
        seen = torch.cat([hypothesis["seen"], itself], dim=2)
        slots = sentence["slots"]
        if used + beams > slots.shape[4]:
            room = max(slots.shape[4], beams)
            slots = sentence["slots"] = torch.cat([slots, slots.new_empty(*slots.shape[:4], room, slots.shape[5])], 4)
        x = self._embed_target(words, self.target_positions(position, position + 1))
        view = View("decoder").show(
            mask=None, words=words, embedded=x, memory=sentence["memory"], memory_mask=memory_mask
        )

        of_self, of_cross = self._of_decoder_heads(view, active)

        def self_attention(number: int, x: Tensor) -> Tensor:
            return self.decoder[number].attention.step(x, slots[:, number], used, seen, of_self)

        def cross_attention(number: int, x: Tensor) -> Tensor:
            return self.decoder[number].cross(x, sentence["cross"][:, number], memory_mask, False, of_cross)[0]

        return self._decode(x, view, active, self_attention, cross_attention), {"seen": seen}, view

    def _decode(self, x: Tensor, view: View, active: ActiveMechanisms, self_attention, cross_attention) -> Tensor:
        """The decoder stack over N positions, with the two attention functions of a forced pass or a step."""
        layers = [x]
        read = _normed_layers(layers, self.decoder_norm)
        for number, block in enumerate(self.decoder):
            x = active.at(HookPoint.DECODER_LAYER_INPUT, x, view.show(layer=number, layers=read))
            x = block.leave(x, self_attention(number, block.enter(x, block.attention_norm)), block.attention_norm)
            x = active.at(HookPoint.DECODER_SUBLAYER, x, view)
            query = block.enter(x, block.cross_norm)
            change = active.at(HookPoint.DECODER_CROSS, cross_attention(number, query), view.show(query=query))
            x = block.leave(x, change, block.cross_norm)
            x = block.feed_forward(x)
            layers.append(x)
        x = active.at(HookPoint.DECODER_STACK_OUTPUT, x, view.show(layers=read))
        view.show(guide=x)
        guide, x = x, active.at(HookPoint.READOUT, x, view)
        output = self.decoder_norm(x)
        view.show(state=(lambda: self.decoder_norm(guide)) if active.any_at(HookPoint.READOUT) else output)
        return active.at(HookPoint.OUTPUT, output, view)
