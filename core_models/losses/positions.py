"""The positions of a mask, as a list of places that all values are read at."""

from __future__ import annotations

import torch
from torch import Tensor


class Positions:
    """The P positions of sentences [S, T] where `mask` is True, in row order; or all, of which the others count 0."""

    def __init__(self, mask: Tensor, places: Tensor | None) -> None:
        self.mask, self._places = mask, places  # [P] int64: places in the flattened mask; None for all

    @classmethod
    def of(cls, mask: Tensor, count: int | None = None) -> Positions:
        """The positions of mask [S, T]. count: how many they are, if the host knows; else it waits for the device."""
        flat = mask.flatten()
        if count is None:
            return cls(mask, torch.nonzero(flat)[:, 0])
        return cls(mask, torch.nonzero_static(flat, size=count)[:, 0])

    @classmethod
    def every(cls, mask: Tensor) -> Positions:
        """All positions of mask [S, T], P = S T, whatever the mask holds."""
        return cls(mask, None)

    def __len__(self) -> int:
        return self.mask.numel() if self._places is None else len(self._places)

    def select(self, values: Tensor) -> Tensor:
        """Values at the positions: [S, T, ...] -> [P, ...]."""
        flat = values.flatten(0, 1)
        return flat if self._places is None else flat.index_select(0, self._places)

    def masked(self, values: Tensor) -> Tensor:
        """Values [P] of the positions where the mask is True, 0 elsewhere."""
        return values if self._places is not None else torch.where(self.mask.flatten(), values, 0.0)

    def sums(self, values: Tensor) -> Tensor:
        """Sums of the positions' values in each sentence: [P] -> [S]."""
        if self._places is None:
            return self.masked(values).view(self.mask.shape).sum(1)
        return values.new_zeros(len(self.mask)).index_add(0, self._sentences, values)

    def mean_weights(self, dtype: torch.dtype) -> Tensor:
        """What makes a sum over a sentence's positions their mean: 1 / its number of them, [P]."""
        weights = 1 / self.counts.clamp(min=1).to(dtype)
        if self._places is None:
            return weights[:, None].expand(self.mask.shape).flatten()
        return weights.index_select(0, self._sentences)

    @property
    def _sentences(self) -> Tensor:
        assert self._places is not None
        return self._places // max(1, self.mask.shape[1])

    @property
    def counts(self) -> Tensor:
        """The number of positions in each sentence, [S]."""
        return self.mask.sum(1)
