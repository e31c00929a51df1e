"""A softmax over some of the last axis, with zeros where there is nothing to choose from."""

from __future__ import annotations

import torch
from torch import Tensor

from core_models.layers.precision import wide


@wide
def masked_softmax(energies: Tensor, mask: Tensor) -> Tensor:
    """Energies [..., N] and a mask that broadcasts to them -> a distribution [..., N] in float32 or better.

    Where the mask is empty it is zero, not NaN.
    """
    return torch.softmax(energies.masked_fill(~mask, torch.finfo(energies.dtype).min), dim=-1) * mask
