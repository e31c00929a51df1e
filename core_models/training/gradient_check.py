"""The result of one training step: numbers of the global batch, the same on every process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Update:
    """Loss terms summed over the global batch (nats), its target tokens, and the gradient's norm before clipping.

    step: counted from 1. broken: the processes with a loss that is not finite. rewards: means over the global batch's
    sentences, by name.
    """

    step: int
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


class UnreadUpdate:
    """A step whose numbers are still on the device, so that the host has not waited for it.

    losses: by process, [processes, terms]; tokens, norm: scalars. `skip` is 1.0 on the device if the step must not
    change the weights, else 0.0.
    """

    def __init__(
        self,
        step: int,
        names: Sequence[str],
        losses: Tensor,
        tokens: Tensor,
        norm: Tensor,
        learning_rate: float,
        rewards: dict[str, float],
    ) -> None:
        self.step, self._names, self._learning_rate, self._rewards = step, names, learning_rate, rewards
        finite, sums = torch.isfinite(losses).all(1), losses.sum(0).double()
        self._numbers = torch.cat([finite.double(), sums, torch.stack([tokens.double(), norm.double()])])
        self.skip = 1.0 - (finite.all() & torch.isfinite(self._numbers).all()).float()

    @staticmethod
    def read(unread: Sequence[UnreadUpdate]) -> list[Update]:
        """The updates with their numbers on the host, which waits once for all of them."""
        if not unread:
            return []
        rows = torch.stack([update._numbers for update in unread]).tolist()
        return [update._with(row) for update, row in zip(unread, rows, strict=True)]

    def _with(self, numbers: list[float]) -> Update:
        *numbers, tokens, norm = numbers
        processes = len(numbers) - len(self._names)
        broken = tuple(process for process in range(processes) if not numbers[process])
        losses = dict(zip(self._names, numbers[processes:], strict=True))
        return Update(self.step, losses, tokens, norm, self._learning_rate, broken, self._rewards)
