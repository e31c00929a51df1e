"""Lines with spaces between their words, as sacreBLEU's tokenizers put them."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU


def tokenised(lines: Sequence[str], tokenize: str = "13a", lowercase: bool = False) -> list[str]:
    """Lines with spaces between their words, by one of sacreBLEU's tokenizers (13a, intl, zh, char, none, …)."""
    tokenizer = BLEU(tokenize=tokenize).tokenizer
    return [tokenizer(line.lower() if lowercase else line) for line in lines]
