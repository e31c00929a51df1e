"""Random encoder-decoders of `transformers`, one a family, with the words that frame a text in their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
import torch

from core_models.interface.search_state import SearchResult, Tree

WORDS = 60
# Words that are no text in any family: what it has of <pad>, <unk>, <s> and </s>, and tags of languages.
TAGS = (10, 11, 12, 13)
ENDING = 1.5  # how far the logit of </s> is below all others together
NEAR = 2e-5  # scores that float32 may put in another order on another processor: some last digits of a sum near -40


@dataclass(frozen=True)
class Family:
    """How a family frames a text, in its own numbers; begin: its <s>, None if it has none."""

    config: str
    model: str
    pad: int
    unknown: int
    begin: int | None
    end: int
    target: tuple[int, ...]
    source_before: tuple[int, ...] = ()
    source_after: tuple[int, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ordinary(self) -> list[int]:
        return [word for word in range(WORDS) if word not in {self.pad, self.unknown, self.begin, self.end, *TAGS}]


FAMILIES = {
    "marian": Family("MarianConfig", "MarianMTModel", 59, 1, None, 0, (59,), settings={
        "pad_token_id": 59, "eos_token_id": 0, "decoder_start_token_id": 59}),
    "marian of two vocabularies": Family("MarianConfig", "MarianMTModel", 59, 1, None, 0, (59,), settings={
        "pad_token_id": 59, "eos_token_id": 0, "decoder_start_token_id": 59, "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 65}),
    "m2m_100": Family("M2M100Config", "M2M100ForConditionalGeneration", 1, 3, 0, 2, (2, 11), (10,)),
    "mbart": Family("MBartConfig", "MBartForConditionalGeneration", 1, 3, 0, 2, (2, 13), (), (12,)),
    "bart": Family("BartConfig", "BartForConditionalGeneration", 1, 3, 0, 2, (2, 0), (0,)),
    "pegasus": Family("PegasusConfig", "PegasusForConditionalGeneration", 0, 5, None, 1, (0,)),
    "blenderbot": Family("BlenderbotConfig", "BlenderbotForConditionalGeneration", 0, 3, 1, 2, (1,)),
    "t5": Family("T5Config", "T5ForConditionalGeneration", 0, 2, None, 1, (0,)),
}  # fmt: skip


def random_model(family: Family, scaled: bool) -> Any:
    """A random model that ends sentences; its norms and biases are drawn away from ones and zeros.

    scaled: its embeddings are, or T5's outputs.
    """
    import transformers

    sizes = (
        {"num_layers": 3, "num_decoder_layers": 3, "num_heads": 4, "d_kv": 6, "d_ff": 48, "initializer_factor": 0.7,
         "tie_word_embeddings": scaled, "scale_decoder_outputs": scaled, "decoder_start_token_id": 0}
        if family.config == "T5Config"
        else {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
              "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, "init_std": 0.15,
              "scale_embedding": scaled, "forced_eos_token_id": None}
    )  # fmt: skip
    torch.manual_seed(1)
    config = getattr(transformers, family.config)(vocab_size=WORDS, d_model=32, **{**sizes, **family.settings})
    model = getattr(transformers, family.model)(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
            elif "layers" in name or "block" in name:
                parameter *= 2
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias += torch.randn_like(model.final_logits_bias)
        texts = torch.tensor([family.ordinary])
        found = model(input_ids=texts, decoder_input_ids=texts, output_hidden_states=True)
        usual, logits = found.decoder_hidden_states[-1][0].mean(0), found.logits[0]
        lacking = (logits.logsumexp(-1) - ENDING - logits[:, family.end]).mean()
        model.get_output_embeddings().weight[family.end] += lacking * usual / (usual * usual).sum()
    model.set_attn_implementation("eager")
    return model.eval()


def assert_generated(
    found: Sequence[SearchResult], sequences: torch.Tensor, scores: torch.Tensor, numbers: Mapping[int, int], end: int
) -> None:
    """Best hypotheses are those of `generate`; one that it cut is best there only if it scores higher.

    found: with their trees. sequences [S, T] and scores [S]: what `generate` returned, without the prompt.
    numbers: a word's number there. end: its </s>. Sentences whose search a near tie decides are left out.
    """
    clear = [sentence for sentence, result in enumerate(found) if not _near_tie(result.tree)]
    assert len(clear) >= len(found) / 2
    for sentence in clear:
        words, score, best = sequences[sentence].tolist(), scores[sentence].item(), found[sentence].hypotheses[0]
        ended = end in words
        if ended or not best.finished:
            assert [numbers[word] for word in best.words] == words[: words.index(end) if ended else None]
            assert best.normalized == pytest.approx(score, abs=1e-4)
        else:
            assert best.normalized < score


def _near_tie(tree: Tree | None) -> bool:
    """Whether somewhere two neighbours in rank with different fates are less than `NEAR` apart."""
    assert tree is not None
    rows = sorted(zip(tree.step, tree.rank, tree.score, tree.fate, strict=True))
    return any(
        step == next_step and fate != next_fate and score - next_score < NEAR
        for (step, _, score, fate), (next_step, _, next_score, next_fate) in pairwise(rows)
    )
