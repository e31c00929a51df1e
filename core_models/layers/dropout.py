"""Fast dropout on CPUs: four decisions from every random 64-bit number, and a multiplied mask.

On two cores PyTorch's dropout takes a sixth of a small Transformer's training step, because it draws its random numbers
one by one on one thread. On other devices PyTorch's dropout is used.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LANES, LEVELS = 4, 1 << 16  # 16-bit decisions in a 64-bit number; a probability is rounded to 1 / 65,536


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each number with `probability` and scale the others to keep the mean (Srivastava 2014)."""
    if x.device.type != "cpu":
        return nn.functional.dropout(x, probability)
    dropped = round(probability * LEVELS)
    if not dropped:
        return x
    if dropped == LEVELS:
        return x * 0.0
    bits = torch.empty(-(-x.numel() // LANES), dtype=torch.int64).random_(-(1 << 63), None)
    decisions = bits.view(torch.int16)[: x.numel()].view(x.shape)
    keep = torch.ge(decisions, dropped - LEVELS // 2, out=torch.empty(x.shape, dtype=x.dtype))
    return x * keep.mul_(LEVELS / (LEVELS - dropped))


class Dropout(nn.Module):
    """Module that applies `dropout` in training."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training and self.probability else x

    def extra_repr(self) -> str:
        return f"p={self.probability}"
