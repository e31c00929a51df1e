"""Random decoder-only models of `transformers`, one a family, with the words of a template in their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.foreign_models import ENDING, WORDS

# The template around a source, in their numbers; the same words may also stand in texts.
BEFORE, AFTER = (10, 11, 12), (13, 14)
END = "<|end|>"  # of a text, in the tokenizer of `write_llama`


@dataclass(frozen=True)
class CausalFamily:
    """What a family has of <pad>, <unk> and <s> (None: it has none), and its end, in its own numbers."""

    config: str
    model: str
    pad: int | None
    unknown: int | None
    begin: int | None
    end: int
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ordinary(self) -> list[int]:
        return [word for word in range(WORDS) if word not in {self.pad, self.unknown, self.begin, self.end}]

    @property
    def before(self) -> tuple[int, ...]:
        return BEFORE if self.begin is None else (self.begin, *BEFORE)


CAUSAL_FAMILIES = {
    "llama": CausalFamily("LlamaConfig", "LlamaForCausalLM", None, None, 1, 2),
    "qwen2": CausalFamily("Qwen2Config", "Qwen2ForCausalLM", 58, None, None, 59, {"tie_word_embeddings": True}),
    "qwen3": CausalFamily("Qwen3Config", "Qwen3ForCausalLM", 58, None, None, 59, {"head_dim": 12}),
    "gemma": CausalFamily("GemmaConfig", "GemmaForCausalLM", 0, 3, 2, 1, {"head_dim": 8}),
    "gemma2": CausalFamily("Gemma2Config", "Gemma2ForCausalLM", 0, 3, 2, 1, {
        "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 64, "attn_logit_softcapping": 3.0,
        "final_logit_softcapping": 4.0}),
}  # fmt: skip


def random_causal_model(family: CausalFamily) -> Any:
    """A random model that ends sentences; its norms and biases are drawn away from ones and zeros."""
    import transformers

    torch.manual_seed(1)
    sizes = {
        "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.15,
        "pad_token_id": family.pad, "bos_token_id": family.begin, "eos_token_id": family.end,
    }  # fmt: skip
    config = getattr(transformers, family.config)(**sizes | family.settings)
    model = getattr(transformers, family.model)(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
            elif "layers" in name:
                parameter *= 2
        texts = torch.tensor([family.ordinary])
        found = model(input_ids=texts, output_hidden_states=True)
        usual, logits = found.hidden_states[-1][0].mean(0), found.logits[0]
        lacking = (logits.logsumexp(-1) - ENDING - logits[:, family.end]).mean()
        model.get_output_embeddings().weight[family.end] += lacking * usual / (usual * usual).sum()
    model.set_attn_implementation("eager")
    return model.eval()


def write_llama(folder: Path, lines: Sequence[str]) -> Path:
    """A random Llama without <pad> and <unk>, with byte-level pieces of these lines; returns its folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(lines, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token=END).save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, bos_token_id=0, eos_token_id=1,
        initializer_range=0.3,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
