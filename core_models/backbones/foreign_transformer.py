"""Models of Hugging Face that are our Transformer under other names: all encoder-decoders that it opens but T5.

Computed by our layers they have the same numbers, and search as fast as systems trained here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from core_models.backbones.foreign_frame import Frame, refuse_fixed_shapes
from core_models.backbones.foreign_tables import head_bias, vocabulary_modules
from core_models.backbones.transformer import Transformer, encode_stack
from core_models.config import ModelConfig
from core_models.interface.mechanism import View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.text.vocabulary import BOS

NORMS = {
    "marian": "post", "bart": "post", "pegasus": "pre", "blenderbot": "pre", "mbart": "pre", "m2m_100": "pre",
}  # fmt: skip
COMPUTED_POSITIONS = 4096  # rows of a table that is computed, if the model asks for fewer
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}  # by their names


class ForeignTransformer(Transformer):
    """Our Transformer with a frame around texts, a bias of the vocabulary head, and norms of embeddings."""

    head_bias: Tensor | None
    frame = Frame()

    def __init__(self, config: ModelConfig, source_words: int, target_words: int) -> None:
        super().__init__(config, source_words, target_words)
        self.source_norm: nn.Module = nn.Identity()
        self.target_norm: nn.Module = nn.Identity()

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.vocabulary.weight, self.head_bias

    def _embed_source(self, words: Tensor) -> Tensor:
        return self.source_norm(super()._embed_source(words))

    def _embed_target(self, words: Tensor, positions: Tensor) -> Tensor:
        return self.target_norm(super()._embed_target(words, positions))

    def encode(self, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Encode source words [S, I] with mask [S, I] -> memory [S, I', d] of the words in their frame."""
        framed, real = self.frame.around(words, mask, self.config.max_positions), self.frame.mask_around(mask)
        before = len(self.frame.source_before)

        def recorded(shares: Tensor) -> Tensor:
            return self.frame.folded(shares[..., before : before + words.shape[1], :], mask)

        return encode_stack(self._embed_source(framed), framed, real, self.encoder, self.encoder_norm, active, recorded)

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Keys and values over the memory, and which of its positions are real, [S, I'] of the mask [S, I]."""
        return {**super().prepare(memory, mask), "mask": self.frame.mask_around(mask)}

    @property
    def target_room(self) -> float:
        """The maximal number of target positions."""
        return super().target_room - len(self.frame.prompt)

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, active: ActiveMechanisms
    ) -> tuple[Tensor, View]:
        """Force input words [S, T] -> the input of the vocabulary head [S, T, d], and the final view."""
        start = len(self.frame.prompt)
        output, whole = super().force(self.frame.behind_prompt(words), mask, sentence, sentence["mask"], active)
        state = output[:, start:]
        view = View("decoder").show(mask=mask, words=words, memory=sentence["memory"], memory_mask=memory_mask)
        return state, view.show(state=state, layers=lambda: [layer[:, start:] for layer in whole.layers])

    def _target_shares(self, shares: Tensor) -> Tensor:
        return self.frame.without_prompt(shares)

    def _source_shares(self, shares: Tensor, memory_mask: Tensor) -> Tensor:
        words = memory_mask.shape[1] - self.frame.source_words
        real = memory_mask.sum(1, keepdim=True) - self.frame.source_words
        mask = torch.arange(words, device=shares.device) < real
        return self.frame.folded(shares[..., len(self.frame.prompt) :, :], mask)

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms, fixed: FixedShapes | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Slots as our Transformer's, with the keys and values of the prompt."""
        refuse_fixed_shapes(fixed)
        room, past = super().start(sentence, active)
        read = {**sentence, **room}
        for position, word in enumerate(self.frame.prompt):
            words = torch.full((len(sentence["memory"]), 1), word, device=sentence["memory"].device)
            _, past, _ = super().step(words, position, read, past, read["mask"], active)
        return {name: read[name] for name in room}, past

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: dict[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, d]."""
        place = position + len(self.frame.prompt)
        return super().step(self.frame.prompted(words), place, sentence, hypothesis, sentence["mask"], active)


def transformer_of(model: Any, frame: Frame, has_begin: bool) -> ForeignTransformer | None:
    """The Transformer that computes what a model of `transformers` does, or None if ours cannot.

    Takes tables as they are, so call it after `renumbered`, and takes the layers out of the model one by one, so that
    no more than one layer is in memory twice. has_begin: BOS is a word of the model, and has a share of every
    distribution.
    """
    config = model.config
    if not _is_ours(config):
        return None
    source, target, head = vocabulary_modules(model)
    encoder, decoder = model.get_encoder(), model.get_decoder()
    tied = "none" if head.weight is not target.weight else "all" if source.weight is target.weight else "target"
    positions = {
        f"{side}_positions.learned": _positions(stack.embed_positions, config, head.weight.dtype)
        for side, stack in (("source", encoder), ("target", decoder))
    }
    sizes = ModelConfig(
        preset=None,
        d_model=config.d_model,
        embedding=config.d_model,
        encoder_layers=len(encoder.layers),
        decoder_layers=len(decoder.layers),
        heads=config.encoder_attention_heads,
        ffn_dim=config.encoder_ffn_dim,
        norm=NORMS[config.model_type],
        tie_embeddings=tied,
        position_embedding="learned",
        max_positions=len(positions["source_positions.learned"]),
        activation_function=ACTIVATIONS[config.activation_function],
    )
    with torch.device("meta"):
        ours = ForeignTransformer(sizes, len(source.weight), len(head.weight))
    tables = {"source_table.weight": source, "target_table.weight": target, "vocabulary.weight": head}
    state = {**positions, **{name: module.weight.detach() for name, module in tables.items()}}
    for side, stack in (("encoder", encoder), ("decoder", decoder)):
        if NORMS[config.model_type] == "pre":
            state |= _named(f"{side}_norm", stack.layer_norm)
        for number in range(len(stack.layers)):
            state |= _layer(f"{side}.{number}", stack.layers[number])
            stack.layers[number] = nn.Identity()
    ours.load_state_dict(state, assign=True)
    for stack_positions in (ours.source_positions, ours.target_positions):
        stack_positions.table = torch.empty(0, config.d_model)  # the one built on no device
    ours.source_norm, ours.target_norm = (
        getattr(stack, "layernorm_embedding", ours.source_norm) for stack in (encoder, decoder)
    )
    ours.embedding_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
    ours.frame = frame
    ours.register_buffer("head_bias", head_bias(model, () if has_begin else (BOS,)), persistent=False)
    return ours.eval()


def _positions(module: Any, config: Any, dtype: torch.dtype) -> Tensor:
    """The table of positions [N, d] from the first one on."""
    if not hasattr(module, "get_embedding"):
        return module.weight.detach()[getattr(module, "offset", 0) :].to(dtype)
    first, length = module.padding_idx + 1, max(COMPUTED_POSITIONS, config.max_position_embeddings)
    return module.get_embedding(first + length, config.d_model, module.padding_idx)[first:].to(dtype)


def _is_ours(config: Any) -> bool:
    """Return True for layers that our Transformer has: those of both sides alike."""
    return (
        config.model_type in NORMS
        and config.encoder_attention_heads == config.decoder_attention_heads
        and config.encoder_ffn_dim == config.decoder_ffn_dim
        and config.activation_function in ACTIVATIONS
    )


def _layer(name: str, layer: Any) -> dict[str, Tensor]:
    """The parameters of a layer by our names."""
    own = layer.self_attn
    found = {
        **_joined(f"{name}.attention.project", own.q_proj, own.k_proj, own.v_proj),
        **_named(f"{name}.attention.output", own.out_proj),
        **_named(f"{name}.attention_norm", layer.self_attn_layer_norm),
        **_named(f"{name}.expand", layer.fc1),
        **_named(f"{name}.contract", layer.fc2),
        **_named(f"{name}.feed_forward_norm", layer.final_layer_norm),
    }
    if (across := getattr(layer, "encoder_attn", None)) is None:
        return found
    return {
        **found,
        **_named(f"{name}.cross.query", across.q_proj),
        **_joined(f"{name}.cross.memory", across.k_proj, across.v_proj),
        **_named(f"{name}.cross.output", across.out_proj),
        **_named(f"{name}.cross_norm", layer.encoder_attn_layer_norm),
    }


def _named(name: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{name}.{kind}": getattr(module, kind).detach() for kind in ("weight", "bias")}


def _joined(name: str, *parts: nn.Module) -> dict[str, Tensor]:
    """Projections that are one here."""
    return {
        f"{name}.{kind}": torch.cat([getattr(part, kind).detach() for part in parts]) for kind in ("weight", "bias")
    }
