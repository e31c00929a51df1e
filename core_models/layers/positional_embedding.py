"""Positional embeddings: sinusoids (Vaswani 2017, section 3.5), as many as are asked for, or a learned table."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from core_models.settings import ConfigError

FIRST_POSITIONS = 64  # initial rows of the table of sinusoids; a longer request doubles its length


class PositionalEmbedding(nn.Module):
    """Sinusoidal positions computed on demand, or a learned table of `longest` rows."""

    def __init__(self, width: int, learned: bool, longest: int) -> None:
        super().__init__()
        self.width = width
        self.learned = nn.Parameter(torch.randn(longest, width) * width**-0.5) if learned else None
        # Not a buffer: distributed training would broadcast the first process's table to others, whose tables may have
        # other lengths.
        self.table = self._sinusoids(0 if learned else FIRST_POSITIONS)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PositionalEmbedding:
        super()._apply(fn, recurse)
        self.table = fn(self.table)
        return self

    def _sinusoids(self, length: int) -> Tensor:
        position = torch.arange(length, dtype=torch.float64)[:, None]
        rate = torch.exp(torch.arange(0, self.width, 2, dtype=torch.float64) * (-math.log(10000.0) / self.width))
        table = torch.zeros(length, self.width, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)[:, : self.width // 2]
        return table.to(torch.get_default_dtype())

    def forward(self, start: int, stop: int) -> Tensor:
        """Rows [stop - start, width]. Raises ConfigError past the end of a learned table."""
        return self.rows(stop)[start:stop]

    def rows(self, stop: int) -> Tensor:
        """A table of at least `stop` rows. Raises ConfigError past the end of a learned one."""
        if self.learned is not None:
            if stop > len(self.learned):
                raise ConfigError(
                    f"a sequence of {stop} positions does not fit the {len(self.learned)} learned ones of this "
                    "model; shorten it or train with larger max_positions"
                )
            return self.learned
        if stop > len(self.table):
            self.table = self._sinusoids(2 * stop).to(self.table)
        return self.table
