"""How long an output may be, of the length of its source."""

from __future__ import annotations

import math

from torch import Tensor

from core_models.config import SearchConfig


def output_limits(source_mask: Tensor, config: SearchConfig, positions: float = math.inf) -> Tensor:
    """How long the output of each source may be at most, EOS counted: mask [S, I] of its pieces -> [S].

    positions: of the decoder, if it has so many and no more.
    """
    lengths = source_mask.sum(1)
    return (lengths * config.length_factor + config.length_offset).clamp(1, min(config.max_length, positions)).long()
