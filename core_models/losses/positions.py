"""The positions of a mask, as a list of places that all values are read at."""

from __future__ import annotations

import torch
from torch import Tensor


class Positions:
    """The P positions of sentences [S, T] where `mask` is True, in row order."""

    def __init__(self, mask: Tensor, places: Tensor) -> None:
        self.mask, self._places = mask, places  # [P] int64: places in the flattened mask

    @classmethod
    def of(cls, mask: Tensor, count: int | None = None) -> Positions:
        """The positions of mask [S, T]. count: how many they are, if the host knows; else it waits for the device."""
        flat = mask.flatten()
        if count is None:
            return cls(mask, torch.nonzero(flat)[:, 0])
        return cls(mask, torch.nonzero_static(flat, size=count)[:, 0])

    def __len__(self) -> int:
        return len(self._places)

    def select(self, values: Tensor) -> Tensor:
        """Values at the positions: [S, T, ...] -> [P, ...]."""
        return values.flatten(0, 1).index_select(0, self._places)

    def sums(self, values: Tensor) -> Tensor:
        """Sums of the positions' values in each sentence: [P] -> [S]."""
        return values.new_zeros(len(self.mask)).index_add(0, self._sentences, values)

    def mean_weights(self, dtype: torch.dtype) -> Tensor:
        """What makes a sum over a sentence's positions their mean: 1 / its number of them, [P]."""
        return (1 / self.counts.to(dtype)).index_select(0, self._sentences)

    @property
    def _sentences(self) -> Tensor:
        return self._places // max(1, self.mask.shape[1])

    @property
    def counts(self) -> Tensor:
        """The number of positions in each sentence, [S]."""
        return self.mask.sum(1)
