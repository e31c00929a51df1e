"""The three tables of a translation system: source words, target words, and the vocabulary head's."""

from __future__ import annotations

from torch import nn

from core_models.config import ModelConfig


def embedding_tables(
    config: ModelConfig, source_words: int, target_words: int, width: int
) -> tuple[nn.Embedding, nn.Embedding, nn.Embedding]:
    """Source, target and output tables [words, width], shared as `config.tie_embeddings` says.

    Raises ValueError if tables of different vocabularies would be shared.
    """
    if config.tie_embeddings == "all" and source_words != target_words:
        raise ValueError(
            f"tie_embeddings: all needs one joint vocabulary, here are {source_words} source and {target_words} target "
            "pieces; use tie_embeddings: target, or prepare the data with a joint vocabulary"
        )
    source = nn.Embedding(source_words, width)
    target = source if config.tie_embeddings == "all" else nn.Embedding(target_words, width)
    return source, target, target if config.tie_embeddings != "none" else nn.Embedding(target_words, width)
