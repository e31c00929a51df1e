"""An encoder-decoder of Hugging Face `transformers` as a backbone: forced passes and steps for search and inspection.

Reads words by our numbers: `foreign_tables` swaps rows of the model's tables in place, so that none is copied. Words
that frame a text (language tags, <s> before a source, a prompt of the decoder) are added here and are positions to
nobody else: attention to them is summed into the word beside them. Offers no hook points to mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from core_models.backbones.foreign_frame import Frame, refuse_fixed_shapes
from core_models.backbones.foreign_layers import cache_of, flat, observed, tensors_of
from core_models.backbones.foreign_tables import head_bias, table_of
from core_models.config import ModelConfig
from core_models.interface.mechanism import View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.text.vocabulary import BOS

# Their positions depend on which number is padding: they are given embeddings, which these families scale in the table.
POSITIONS_BY_PADDING = ("m2m_100",)
# Positions computed from a distance, or from a table that grows.
UNLIMITED = ("t5", "mt5", "m2m_100")


class ForeignEncoderDecoder(nn.Module):
    """A model of `transformers` whose tables were `renumbered`, between the same functions as our Transformer."""

    def __init__(self, model: Any, frame: Frame, has_begin: bool) -> None:
        """has_begin: BOS is a word of the model, and has a share of every distribution."""
        super().__init__()
        model.set_attn_implementation("eager")  # the others return no weights
        self.model, self.frame = model.eval(), frame
        self.family = model.config.model_type
        self.encoder, self.decoder = model.get_encoder(), model.get_decoder()
        self.source_table, self.target_table = table_of(self.encoder), table_of(self.decoder)
        config = model.config
        self.heads = getattr(config, "decoder_attention_heads", None) or config.num_heads
        self.head_width = getattr(config, "d_kv", None) or config.d_model // self.heads
        self.register_buffer("head_bias", head_bias(model, () if has_begin else (BOS,)), persistent=False)
        self.head_scale = config.d_model**-0.5 if getattr(config, "scale_decoder_outputs", False) else 1.0

    @property
    def positions(self) -> float:
        """The number of positions of a sequence."""
        return math.inf if self.family in UNLIMITED else self.model.config.max_position_embeddings

    @property
    def target_room(self) -> float:
        """The maximal number of target positions."""
        return self.positions - len(self.frame.prompt)

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.model.get_output_embeddings().weight, self.head_bias

    @staticmethod
    def attention_maps(config: ModelConfig) -> dict[str, tuple[int, int]]:
        """Layers and heads of each attention in a trace, by name."""
        decoder = dict.fromkeys(("decoder.self_attention", "decoder.cross_attention"), config.decoder_layers)
        layers = {"encoder.self_attention": config.encoder_layers, **decoder}
        return {name: (count, config.heads) for name, count in layers.items()}

    def _read(self, stack: Any, words: Tensor) -> dict[str, Tensor]:
        """The argument by which a stack is given words."""
        if self.family in POSITIONS_BY_PADDING:
            return {"inputs_embeds": stack.embed_tokens(words)}
        return {"input_ids": words}

    def encode(self, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Encode source words [S, I] with mask [S, I] -> memory [S, I', d] of the words in their frame."""
        framed = self.frame.around(words, mask, self.positions)
        records = active.wants("encoder.self_attention")
        real = self.frame.mask_around(mask)
        output = self.encoder(**self._read(self.encoder, framed), attention_mask=real.long(), output_attentions=records)
        if records:
            start = len(self.frame.source_before)
            shares = torch.stack(output.attentions, 1)[..., start : start + words.shape[1], :]  # [S, layers, H, I, I']
            axes = ("layer", "head", "source", "source_key")
            active.record("encoder.self_attention", axes, self.frame.folded(shares, mask), "source_key")
        return output.last_hidden_state

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """The memory, and which of its positions are real, [S, I']."""
        return {"memory": memory, "mask": self.frame.mask_around(mask)}

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, active: ActiveMechanisms
    ) -> tuple[Tensor, View]:
        """Force input words [S, T] -> the input of the vocabulary head [S, T, d], and the final view."""
        start = len(self.frame.prompt)
        records = active.wants("decoder.self_attention") or active.wants("decoder.cross_attention")
        layers: list[Tensor] = []
        with ExitStack() as hooks:
            for number, block in enumerate(self._blocks()):
                hooks.callback(observed(block, layers, with_input=number == 0).remove)
            output = self.decoder(
                **self._read(self.decoder, self.frame.behind_prompt(words)),
                encoder_hidden_states=sentence["memory"],
                encoder_attention_mask=sentence["mask"].long(),
                use_cache=False,
                output_attentions=records,
            )
        if records:
            kept = self.frame.without_prompt(torch.stack(output.attentions, 1))
            across = self.frame.folded(torch.stack(output.cross_attentions, 1)[..., start:, :], memory_mask)
            active.record("decoder.self_attention", ("layer", "head", "target", "target_key"), kept, "target_key")
            active.record("decoder.cross_attention", ("layer", "head", "target", "source"), across, "source")
        result = self._head_input(output.last_hidden_state[:, start:])
        view = View("decoder").show(mask=mask, words=words, memory=sentence["memory"], memory_mask=memory_mask)
        return result, view.show(state=result, layers=lambda: self._readable([layer[:, start:] for layer in layers]))

    def _blocks(self) -> Sequence[nn.Module]:
        return self.decoder.block if hasattr(self.decoder, "block") else self.decoder.layers

    def _readable(self, layers: Sequence[Tensor]) -> list[Tensor]:
        """Layers [S, T, d] as inputs of the vocabulary head: through the final norm if there is one."""
        norm = getattr(self.decoder, "final_layer_norm", None) or getattr(self.decoder, "layer_norm", None)
        return [self._head_input(layer if norm is None else norm(layer)) for layer in layers]

    def _head_input(self, state: Tensor) -> Tensor:
        return state if self.head_scale == 1 else state * self.head_scale

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms, fixed: FixedShapes | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Keys and values of the prompt but its last word, NUMBER.keys and NUMBER.values [S, 1, H, t, e]."""
        refuse_fixed_shapes(fixed)
        memory = sentence["memory"]
        empty = memory.new_zeros(len(memory), 1, self.heads, 0, self.head_width)
        first = {f"{number}.{kind}": empty for number in range(len(self._blocks())) for kind in ("keys", "values")}
        read, room = dict(sentence), {}
        for word in self.frame.prompt:
            words = torch.full((len(memory), 1), word, dtype=torch.long, device=memory.device)
            _, first = self._stepped(words, read, first)
            room = {name: value for name, value in read.items() if name not in sentence}
        return room, first

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: dict[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, d] and its keys and values.

        Keys and values of the memory are added to `sentence` when they are first computed, NUMBER.cross_keys
        [S, K, H, I', e].
        """
        output, stepped = self._stepped(self.frame.prompted(words), sentence, hypothesis)
        return output, stepped, View("decoder").show(mask=None, words=words, memory=sentence["memory"], state=output)

    def _stepped(
        self, words: Tensor, sentence: dict[str, Tensor], hypothesis: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        from transformers import DynamicCache, EncoderDecoderCache

        memory, (sentences, beams) = sentence["memory"], words.shape
        layers = range(len(self._blocks()))
        known = "0.cross_keys" in sentence
        across = DynamicCache()
        if known:
            for name in (f"{number}.cross_{kind}" for number in layers for kind in ("keys", "values")):
                if sentence[name].shape[1] != beams:  # beams of a sentence share them until there are several
                    sentence[name] = sentence[name][:, :1].expand(-1, beams, -1, -1, -1).contiguous()
            across = cache_of([flat(sentence, f"{number}.cross_") for number in layers])
            memory = memory.new_zeros(1).expand(sentences * beams, memory.shape[1], 1)  # only its length is read
        else:
            memory = memory.repeat_interleave(beams, 0)
        cache = EncoderDecoderCache(cache_of([flat(hypothesis, f"{number}.") for number in layers]), across)
        output = self.decoder(
            **self._read(self.decoder, words.reshape(-1, 1)),
            encoder_hidden_states=memory,
            encoder_attention_mask=sentence["mask"].long().repeat_interleave(beams, 0),
            past_key_values=cache,
            use_cache=True,
        )
        if not known:
            sentence.update(tensors_of(cache.cross_attention_cache, "cross_", sentences))
        state = self._head_input(output.last_hidden_state)
        return state.view(sentences, beams, -1), tensors_of(cache.self_attention_cache, "", sentences)
