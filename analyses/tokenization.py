"""Tokenization by sacreBLEU's tokenizers."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU


def tokenized(lines: Sequence[str], tokenize: str = "13a", lowercase: bool = False) -> list[str]:
    """Tokenize lines with one of sacreBLEU's tokenizers (13a, intl, zh, char, none, …); spaces separate words."""
    tokenizer = BLEU(tokenize=tokenize).tokenizer
    return [tokenizer(line.lower() if lowercase else line) for line in lines]
