"""The result of one training step: numbers of the global batch, the same on every process."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Update:
    """Loss terms summed over the global batch (nats), its target tokens, and the gradient's norm before clipping.

    broken: the processes with a loss that is not finite. rewards: means over the global batch's sentences, by name.
    """

    losses: dict[str, float]
    tokens: float
    gradient_norm: float
    learning_rate: float
    broken: tuple[int, ...] = ()
    rewards: dict[str, float] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """The reason why this step must not change the weights, or ""."""
        if self.broken:
            return f"the loss of process {', '.join(map(str, self.broken))} is not finite"
        if not all(map(math.isfinite, self.losses.values())):
            return "the sum of the processes' losses is not finite"
        return "" if math.isfinite(self.gradient_norm) else "the gradient is not finite"
