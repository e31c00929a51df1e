"""The mechanisms of a system during one pass, each with its state.

A backbone calls `active.at(hook_point, x, view)` where it offers a hook point and knows nothing else of its mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from core_models.interface.mechanism import HookPoint, Mechanism, MechanismState, View
from core_models.layers.deferred_linear import DeferredProducts, images

if TYPE_CHECKING:
    from core_models.traces import TraceWriter

Tensors = Mapping[str, Tensor]


class ActiveMechanisms:
    """Mechanisms by name, each with its state for this pass; `trace` is there in forced passes that record."""

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        sentence: Mapping[str, Tensors],
        before: Mapping[str, Tensors],
        forced: bool,
        trace: TraceWriter | None = None,
    ) -> None:
        self.mechanisms, self.trace = mechanisms, trace
        self.owns = {
            name: MechanismState(sentence.get(name, {}), before.get(name, {}), forced, trace, name)
            for name in mechanisms
        }
        self.linear: Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]] = images
        self._past: dict[str, list[tuple[dict[str, Tensor], dict[str, Tensor]]]] = {name: [] for name in mechanisms}

    def any_at(self, *hook_points: HookPoint) -> bool:
        """Does any mechanism work at one of these hook points?"""
        return any(
            hook_point in mechanism.hook_points for mechanism in self.mechanisms.values() for hook_point in hook_points
        )

    def at(self, hook_point: HookPoint, x: Tensor, view: View) -> Tensor:
        """Let every mechanism at the hook point work on x, in the order of the configuration."""
        for name, mechanism in self.mechanisms.items():
            if hook_point in mechanism.hook_points:
                x = mechanism.at(hook_point, x, view, self.owns[name])
        return x

    def wants(self, name: str) -> bool:
        return self.trace is not None and self.trace.wants(name)

    def record(self, name: str, axes: Iterable[str], value: Tensor, sums_to_one: str | None = None) -> None:
        if self.trace is not None:
            self.trace.record(name, tuple(axes), value, sums_to_one)

    @property
    def attended_maps(self) -> list[nn.Linear]:
        """All maps of the attended context that mechanisms ask for."""
        return [one for mechanism in self.mechanisms.values() for one in mechanism.attended_maps]

    def attend(self, found: Sequence[Tensor]) -> None:
        """Hand every mechanism the images of the attended context under its maps."""
        remaining = list(found)
        for name, mechanism in self.mechanisms.items():
            count = len(mechanism.attended_maps)
            self.owns[name].attended, remaining = tuple(remaining[:count]), remaining[count:]

    def recur(self, positions: int) -> None:
        """A forced recurrence begins: linear maps in it have their gradients made after it."""
        self._let_map(DeferredProducts(positions))

    def _let_map(self, linear: Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]]) -> None:
        self.linear = linear
        for own in self.owns.values():
            own.linear = linear

    def advance(self) -> None:
        """In a forced recurrence: what this position left is what the next one finds."""
        for name, own in self.owns.items():
            self._past[name].append((dict(own.before), dict(own.after)))
            own.before.update(own.after)

    def gather(self) -> None:
        """After a forced recurrence: stack what every position found and left over the target axis, [S, T, ...]."""
        self._let_map(images)
        for name, own in self.owns.items():
            for key in own.after:
                own.before[key] = torch.cat([found[key] for found, _ in self._past[name]], dim=1)
                own.after[key] = torch.cat([left[key] for _, left in self._past[name]], dim=1)
