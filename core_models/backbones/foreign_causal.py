"""A decoder-only model of Hugging Face `transformers` as a backbone that translates by a prompt with a template.

The prompt of a sentence is the template's words before the source, the source, and the template's words behind it. BOS
stands for the last of these, so the output begins right behind it. Prompts are padded at the left, and positions are
given to the model. Attention to the source is that of the target's rows to the source's place in the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core_models.backbones.foreign_frame import refuse_fixed_shapes
from core_models.backbones.foreign_layers import cache_of, observed, tensors_of
from core_models.backbones.foreign_tables import Table, head_bias, table_of
from core_models.config import ModelConfig
from core_models.interface.mechanism import View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.settings import ConfigError
from core_models.text.vocabulary import BOS


@dataclass(frozen=True)
class Prompt:
    """The template's words around a source, by our numbers; `after` has at least one, which BOS stands for."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class ForeignDecoder(nn.Module):
    """A decoder-only model whose tables were `renumbered`, between the same functions as our Transformer.

    The memory is the embeddings of the source [S, I, d], as they are stored: the prompt is read by the decoder.
    """

    def __init__(self, model: Any, prompt: Prompt, missing: Sequence[int] = ()) -> None:
        """missing: those of PAD, UNK and BOS that the model does not have; they are never put out."""
        super().__init__()
        model.set_attn_implementation("eager")  # the others return no weights
        self.model, self.prompt = model.eval(), prompt
        self.decoder = model.get_decoder()
        self.source_table = self.target_table = table_of(self.decoder)
        table = self.decoder.embed_tokens
        self.scale = table.scale if isinstance(table, Table) else 1.0
        config = model.config
        self.heads = config.num_key_value_heads
        self.head_width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.logit_cap: float | None = getattr(config, "final_logit_softcapping", None)
        self.register_buffer("head_bias", head_bias(model, missing), persistent=False)

    @property
    def positions(self) -> int:
        """The number of positions that every layer sees: a text longer than a layer's window is not read."""
        config = self.model.config
        if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
            return min(config.max_position_embeddings, config.sliding_window)
        return config.max_position_embeddings

    @property
    def target_room(self) -> int:
        """The maximal number of target positions: half of all; the other half is the prompt's."""
        return self.positions // 2

    @property
    def output_matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.model.get_output_embeddings().weight, self.head_bias

    @staticmethod
    def attention_maps(config: ModelConfig) -> dict[str, tuple[int, int]]:
        """Layers and heads of each attention in a trace, by name."""
        names = ("decoder.self_attention", "decoder.cross_attention")
        return dict.fromkeys(names, (config.decoder_layers, config.heads))

    def encode(self, words: Tensor, mask: Tensor, active: ActiveMechanisms) -> Tensor:
        """Look up source words [S, I] with mask [S, I] -> their embeddings [S, I, d]."""
        most = self.positions - self.target_room
        longest = len(self.prompt.before) + len(self.prompt.after) + int(mask.sum(1).max()) - 1
        if longest > most:
            raise ConfigError(
                f"a prompt of {longest} pieces does not fit the {most} positions that this model has for one; shorten "
                "the source or the template"
            )
        return self.source_table(words)

    def prepare(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """The memory, and which of its positions are real, [S, I]."""
        return {"memory": memory, "mask": mask}

    def _read_prompt(self, sentence: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Embeddings [S, P, d] of the prompts but their last word, and positions [S, P], below 0 for padding."""
        memory, words = sentence["memory"], sentence["mask"].sum(1) - 1  # without EOS
        before, after = (self._looked_up(part, memory) for part in (self.prompt.before, self.prompt.after[:-1]))
        parts = torch.cat([before, memory, after], 1)
        length = before.shape[1] + int(words.max()) + after.shape[1]
        positions = torch.arange(length, device=memory.device) - (words.max() - words)[:, None]
        behind = positions >= (before.shape[1] + words)[:, None]
        places = (positions + behind * (memory.shape[1] - words)[:, None]).clamp(min=0)
        return parts.gather(1, places[..., None].expand(-1, -1, parts.shape[-1])), positions

    def _looked_up(self, words: Sequence[int], memory: Tensor) -> Tensor:
        """Embeddings of the template's words, [S, N, d]; they are no lookups of the table's, which attribution sees."""
        numbers = torch.tensor(list(words), dtype=torch.long, device=memory.device)
        return nn.functional.embedding(numbers, self.target_table.weight).expand(len(memory), -1, -1)

    def _embedded(self, words: Tensor) -> Tensor:
        """Embeddings of target words, with the prompt's last word in place of BOS."""
        return self.target_table(torch.where(words == BOS, self.prompt.after[-1], words))

    def _run(self, vectors: Tensor, seen: Tensor, positions: Tensor, **options: Any) -> Any:
        """Run the stack over embeddings [R, N, d] at positions [R, N]; seen [R, N, M] of those at most M positions."""
        mask = vectors.new_zeros(seen.shape).masked_fill(~seen, torch.finfo(vectors.dtype).min)[:, None]
        return self.decoder(
            inputs_embeds=vectors * self.scale,
            attention_mask=mask,
            position_ids=positions.clamp(min=0),
            **options,
        )

    def force(
        self, words: Tensor, mask: Tensor, sentence: Mapping[str, Tensor], memory_mask: Tensor, active: ActiveMechanisms
    ) -> tuple[Tensor, View]:
        """Force input words [S, T] -> the input of the vocabulary head [S, T, d], and the final view."""
        prompt, places = self._read_prompt(sentence)
        start = prompt.shape[1]
        own = places.new_zeros(len(words), 1) if not start else places[:, -1:] + 1
        positions = torch.cat([places, own + torch.arange(words.shape[1], device=words.device)], 1)
        wanted = ("decoder.self_attention", "decoder.cross_attention", "source_share", "template_share", "prefix_share")
        records = any(map(active.wants, wanted))
        layers: list[Tensor] = []
        with ExitStack() as hooks:
            for number, block in enumerate(self.decoder.layers):
                hooks.callback(observed(block, layers, with_input=number == 0).remove)
            output = self._run(
                torch.cat([prompt, self._embedded(words)], 1),
                _causal(positions >= 0),
                positions,
                use_cache=False,
                output_attentions=records,
            )
        if records:
            self._record_attention(torch.stack(output.attentions, 1)[..., start:, :], places, memory_mask, active)
        result = output.last_hidden_state[:, start:]
        view = View("decoder").show(mask=mask, words=words, memory=sentence["memory"], memory_mask=memory_mask)
        return result, view.show(state=result, layers=lambda: [self.decoder.norm(layer[:, start:]) for layer in layers])

    def _record_attention(self, weights: Tensor, places: Tensor, memory_mask: Tensor, active: ActiveMechanisms) -> None:
        """Record weights [S, layers, H, T, P + T] of the target's rows on the parts of the prompt and on the prefix.

        The weights on the source are divided by their sum, its share. </s>, which is not in the prompt, has a weight of
        one where nothing else has any. In the self-attention BOS has the weights of the whole prompt.
        """
        start, words = places.shape[1], memory_mask.sum(1) - 1
        columns = torch.arange(memory_mask.shape[1], device=words.device)
        within = columns < words[:, None]
        first = (places < len(self.prompt.before)).sum(1)  # padding and the template before the source
        index = torch.where(within, first[:, None] + columns, 0)[:, None, None, None]
        across = weights.gather(-1, index.expand(*weights.shape[:-1], -1)) * within[:, None, None, None]
        share = across.sum(-1)
        own = weights[..., start:].clone()
        prefix = own[..., 1:].sum(-1)
        template = weights[..., : start + 1].sum(-1) - share
        own[..., 0] += weights[..., :start].sum(-1)
        end = (columns == words[:, None])[:, None, None, None] & (share == 0)[..., None]
        across = across / torch.where(share == 0, 1.0, share)[..., None] + end
        active.record("decoder.self_attention", ("layer", "head", "target", "target_key"), own, "target_key")
        active.record("decoder.cross_attention", ("layer", "head", "target", "source"), across, "source")
        for name, value in (("source", share), ("template", template.clamp(min=0)), ("prefix", prefix)):
            active.record(f"{name}_share", ("layer", "head", "target"), value)

    def start(
        self, sentence: Mapping[str, Tensor], active: ActiveMechanisms, fixed: FixedShapes | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Keys and values of the prompt but its last word, NUMBER.prompt_keys [S, 1, H, P, e], which beams share."""
        refuse_fixed_shapes(fixed)
        prompt, places = self._read_prompt(sentence)
        empty = prompt.new_zeros(len(prompt), self.heads, 0, self.head_width)
        cache = cache_of([(empty, empty) for _ in self.decoder.layers])
        if prompt.shape[1]:
            self._run(prompt, _causal(places >= 0), places, past_key_values=cache, use_cache=True)
        room = tensors_of(cache, "prompt_", len(prompt))
        first = {f"{number}.{kind}": empty[:, None] for number in range(len(room) // 2) for kind in ("keys", "values")}
        return {**room, "prompt_places": places}, first

    def step(
        self,
        words: Tensor,
        position: int,
        sentence: dict[str, Tensor],
        hypothesis: Mapping[str, Tensor],
        memory_mask: Tensor,
        active: ActiveMechanisms,
    ) -> tuple[Tensor, dict[str, Tensor], View]:
        """Step one position of every hypothesis: words [S, K] -> [S, K, d] and its keys and values."""
        (sentences, beams), places = words.shape, sentence["prompt_places"]
        start = places.shape[1]

        def joined(number: int, kind: str) -> Tensor:
            shared = sentence[f"{number}.prompt_{kind}"].expand(-1, beams, -1, -1, -1)
            return torch.cat([shared, hypothesis[f"{number}.{kind}"]], 3).flatten(0, 1)

        layers = range(len(self.decoder.layers))
        cache = cache_of([(joined(number, "keys"), joined(number, "values")) for number in layers])
        read = (places >= 0).repeat_interleave(beams, 0)
        seen = torch.nn.functional.pad(read, (0, position + 1), value=True)
        last = (places >= 0).sum(1).repeat_interleave(beams)
        output = self._run(
            self._embedded(words).flatten(0, 1)[:, None],
            seen[:, None],
            (last + position)[:, None],
            past_key_values=cache,
            use_cache=True,
        )
        state = output.last_hidden_state.view(sentences, beams, -1)
        stepped = tensors_of(cache, "", sentences, start)
        return state, stepped, View("decoder").show(mask=None, words=words, memory=sentence["memory"], state=state)


def _causal(real: Tensor) -> Tensor:
    """Which positions [S, N, N] each one sees: itself and the real ones before it."""
    length = real.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=real.device).tril()
    return causal & real[:, None] | torch.eye(length, dtype=torch.bool, device=real.device)
