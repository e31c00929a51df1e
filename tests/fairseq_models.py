"""Checkpoints of fairseq with random weights, and its Transformer written out from its equations, one sentence a time.

Shares no code with ours: in place of fairseq, which later versions of Python do not install.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

WIDTH, HEADS, INNER, SOURCE_WORDS, TARGET_WORDS = 16, 4, 24, 19, 23
PAD, END = 1, 2
PLAIN: dict[str, Any] = {
    "arch": "transformer_iwslt_de_en", "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
    "encoder_normalize_before": False, "decoder_normalize_before": False, "encoder_learned_pos": False,
    "decoder_learned_pos": False, "no_token_positional_embeddings": False, "no_scale_embedding": False,
    "activation_fn": "relu", "max_source_positions": 40, "max_target_positions": 30, "layernorm_embedding": False,
    "adaptive_softmax_cutoff": None, "share_all_embeddings": False, "share_decoder_input_output_embed": False,
    "task": "translation", "dropout": 0.3, "attention_dropout": 0.0, "activation_dropout": 0.0,
}  # fmt: skip


def settings(**changes: Any) -> dict[str, Any]:
    return PLAIN | changes


def random_tensors(given: Mapping[str, Any], encoder_layers: int = 2, decoder_layers: int = 3) -> dict[str, Tensor]:
    """The tensors of a checkpoint by fairseq's names."""
    drawn = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=drawn) * shape[-1] ** -0.5

    found: dict[str, Tensor] = {}

    def linear(name: str, read: int, written: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = draw(written, read), draw(written)

    def norm(name: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = 1 + draw(WIDTH), draw(WIDTH)

    for side, words, layers in (("encoder", SOURCE_WORDS, encoder_layers), ("decoder", TARGET_WORDS, decoder_layers)):
        words = TARGET_WORDS if given["share_all_embeddings"] else words
        found[f"{side}.version"] = torch.tensor([3.0])
        found[f"{side}.embed_tokens.weight"] = draw(words, WIDTH)
        found[f"{side}.embed_tokens.weight"][PAD] = 0
        if given["no_token_positional_embeddings"]:
            pass
        elif given[f"{side}_learned_pos"]:
            longest = given["max_source_positions" if side == "encoder" else "max_target_positions"]
            found[f"{side}.embed_positions.weight"] = draw(longest + PAD + 1, WIDTH)
        else:
            found[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
        for layer in range(layers):
            for attention in ("self_attn", "encoder_attn")[: 1 if side == "encoder" else 2]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{side}.layers.{layer}.{attention}.{part}", WIDTH, WIDTH)
                norm(f"{side}.layers.{layer}.{attention}_layer_norm")
            linear(f"{side}.layers.{layer}.fc1", WIDTH, INNER)
            linear(f"{side}.layers.{layer}.fc2", INNER, WIDTH)
            norm(f"{side}.layers.{layer}.final_layer_norm")
        if given[f"{side}_normalize_before"]:
            norm(f"{side}.layer_norm")
    if given["share_all_embeddings"]:
        found["encoder.embed_tokens.weight"] = found["decoder.embed_tokens.weight"]
    shared = given["share_all_embeddings"] or given["share_decoder_input_output_embed"]
    found["decoder.output_projection.weight"] = (
        found["decoder.embed_tokens.weight"] if shared else draw(TARGET_WORDS, WIDTH)
    )
    found["decoder.output_projection.weight"][END] += 0.5
    return found


class Reference:
    """fairseq's Transformer in evaluation, for words by fairseq's numbers."""

    def __init__(self, given: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.given, self.tensors = given, tensors

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def embedded(self, side: str, words: Sequence[int]) -> Tensor:
        """Positions begin behind the number of padding, and padding has none."""
        scale = 1 if self.given["no_scale_embedding"] else math.sqrt(WIDTH)
        x = scale * self.tensors[f"{side}.embed_tokens.weight"][list(words)]
        places = [PAD + 1 + place for place in range(len(words))]
        if self.given["no_token_positional_embeddings"]:
            return x
        if self.given[f"{side}_learned_pos"]:
            return x + self.tensors[f"{side}.embed_positions.weight"][places]
        rows = []
        for place in places:
            rates = [math.exp(-k * math.log(10000) / (WIDTH // 2 - 1)) for k in range(WIDTH // 2)]
            rows.append([math.sin(place * rate) for rate in rates] + [math.cos(place * rate) for rate in rates])
        return x + torch.tensor(rows)

    def attention(self, name: str, x: Tensor, read: Tensor, causal: bool) -> Tensor:
        width = WIDTH // HEADS
        query = self.linear(f"{name}.q_proj", x) * width**-0.5
        key, value = self.linear(f"{name}.k_proj", read), self.linear(f"{name}.v_proj", read)
        found = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            energy = query[:, part] @ key[:, part].T
            if causal:
                energy = energy + torch.full_like(energy, -math.inf).triu(1)
            found.append(energy.softmax(-1) @ value[:, part])
        return self.linear(f"{name}.out_proj", torch.cat(found, -1))

    def stack(self, side: str, x: Tensor, memory: Tensor | None) -> Tensor:
        before = self.given[f"{side}_normalize_before"]

        def sublayer(x: Tensor, norm: str, change) -> Tensor:
            return x + change(self.norm(norm, x)) if before else self.norm(norm, x + change(x))

        layer = 0
        while f"{side}.layers.{layer}.fc1.weight" in self.tensors:
            name = f"{side}.layers.{layer}"
            x = sublayer(
                x,
                f"{name}.self_attn_layer_norm",
                lambda x, name=name: self.attention(f"{name}.self_attn", x, x, memory is not None),
            )
            if memory is not None:
                x = sublayer(
                    x,
                    f"{name}.encoder_attn_layer_norm",
                    lambda x, name=name: self.attention(f"{name}.encoder_attn", x, memory, False),
                )
            x = sublayer(x, f"{name}.final_layer_norm", lambda x, name=name: self.feed_forward(name, x))
            layer += 1
        return self.norm(f"{side}.layer_norm", x) if before else x

    def feed_forward(self, name: str, x: Tensor) -> Tensor:
        activation = {"relu": functional.relu, "gelu": functional.gelu}[self.given["activation_fn"]]
        return self.linear(f"{name}.fc2", activation(self.linear(f"{name}.fc1", x)))

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> Tensor:
        """log P over the vocabulary before every word of a target and before its end: [T + 1, V]."""
        memory = self.stack("encoder", self.embedded("encoder", [*source, END]), None)
        x = self.stack("decoder", self.embedded("decoder", [END, *target]), memory)
        return (x @ self.tensors["decoder.output_projection.weight"].T).log_softmax(-1)


def write_checkpoint(path: Path, given: Mapping[str, Any], tensors: Mapping[str, Tensor], **others: Any) -> Path:
    """A checkpoint in the form of fairseq before 0.10, with `args`; others: what stands beside it."""
    content = {"args": argparse.Namespace(**given), "model": dict(tensors), "extra_state": {"epoch": 3}, **others}
    torch.save(content, path)
    return path


def write_dictionaries(folder: Path) -> tuple[Path, Path]:
    """dict.xx.txt and dict.yy.txt of as many words as the tables have rows."""
    paths = []
    for side, words in (("xx", SOURCE_WORDS), ("yy", TARGET_WORDS)):
        path = folder / f"dict.{side}.txt"
        path.write_text("".join(f"{side}{number} 1\n" for number in range(4, words)), encoding="utf-8")
        paths.append(path)
    return paths[0], paths[1]
