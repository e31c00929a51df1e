"""Sparsemax (Martins and Astudillo 2016): the projection of energies onto the simplex; many weights are zero."""

from __future__ import annotations

import torch
from torch import Tensor

from core_models.layers.precision import wide


@wide
def sparsemax(energies: Tensor, mask: Tensor | None = None) -> Tensor:
    """Sparsemax of energies [..., M] over the last axis; a row whose mask [..., M] is empty gets zeros.

    max(energies - tau, 0), tau = (sum of the k largest - 1) / k for the largest k at which the k-th energy is still
    above it (Algorithm 1). The gradient passes through the selected energies.
    """
    if mask is not None:
        # Finite, and too low to be selected: the k-th energy must be above the mean of the k largest minus 1 / k.
        lowest = energies.detach().masked_fill(~mask, torch.inf).amin(-1, keepdim=True)
        below = torch.where(torch.isfinite(lowest), lowest, 0.0) - 2.0
        energies = torch.where(mask, energies, below.to(energies.dtype))
    ordered = energies.sort(dim=-1, descending=True).values
    counts = torch.arange(1, energies.shape[-1] + 1, device=energies.device, dtype=energies.dtype)
    sums = ordered.cumsum(-1)
    support = (1 + counts * ordered > sums).sum(-1, keepdim=True)
    tau = (sums.gather(-1, support - 1) - 1) / support.to(energies.dtype)
    shares = (energies - tau).clamp(min=0)
    return shares if mask is None else shares * mask
