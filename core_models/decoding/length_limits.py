"""Maximal output lengths from source lengths."""

from __future__ import annotations

import math

from torch import Tensor

from core_models.config import SearchConfig


def output_limits(source_mask: Tensor, config: SearchConfig, positions: float = math.inf) -> Tensor:
    """Maximal output length of each source, with EOS: mask [S, I] of its pieces -> [S].

    positions: the decoder's maximal number of positions.
    """
    lengths = source_mask.sum(1)
    return (lengths * config.length_factor + config.length_offset).clamp(1, min(config.max_length, positions)).long()
