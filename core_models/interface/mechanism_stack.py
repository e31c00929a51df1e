"""The mechanisms of a system during one pass, each with its state.

A backbone only calls `active.at(hook_point, x, view)` at the hook points it offers.
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
    """Mechanisms by name, each with its state for this pass; `trace` is set in forced passes that record."""

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        sentence: Mapping[str, Tensors],
        before: Mapping[str, Tensors],
        forced: bool,
        trace: TraceWriter | None = None,
    ) -> None:
        self.mechanisms, self.trace = mechanisms, trace
        self.states = {
            name: MechanismState(sentence.get(name, {}), before.get(name, {}), forced, trace, name)
            for name in mechanisms
        }
        self.linear: Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]] = images
        self._past: dict[str, list[tuple[dict[str, Tensor], dict[str, Tensor]]]] = {name: [] for name in mechanisms}

    def any_at(self, *hook_points: HookPoint) -> bool:
        """True if any mechanism uses one of these hook points."""
        return any(
            hook_point in mechanism.hook_points for mechanism in self.mechanisms.values() for hook_point in hook_points
        )

    def at(self, hook_point: HookPoint, x: Tensor, view: View) -> Tensor:
        """Apply every mechanism at the hook point to x, in the order of the configuration."""
        for name, mechanism in self.mechanisms.items():
            if hook_point in mechanism.hook_points:
                x = mechanism.at(hook_point, x, view, self.states[name])
        return x

    def wants(self, name: str) -> bool:
        return self.trace is not None and self.trace.wants(name)

    def record(self, name: str, axes: Iterable[str], value: Tensor, sums_to_one: str | None = None) -> None:
        if self.trace is not None:
            self.trace.record(name, tuple(axes), value, sums_to_one)

    @property
    def attended_maps(self) -> list[nn.Linear]:
        """The maps of the attended context of all mechanisms."""
        return [linear for mechanism in self.mechanisms.values() for linear in mechanism.attended_maps]

    def attend(self, context_images: Sequence[Tensor]) -> None:
        """Give every mechanism the images of the attended context under its maps."""
        remaining = list(context_images)
        for name, mechanism in self.mechanisms.items():
            count = len(mechanism.attended_maps)
            self.states[name].attended, remaining = tuple(remaining[:count]), remaining[count:]

    def recur(self, positions: int) -> None:
        """Begin a forced recurrence, in which the gradients of linear maps are computed at the end."""
        self._let_map(DeferredProducts(positions))

    def _let_map(self, linear: Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]]) -> None:
        self.linear = linear
        for state in self.states.values():
            state.linear = linear

    def advance(self) -> None:
        """Advance a forced recurrence: the state after this position becomes that before the next one."""
        for name, state in self.states.items():
            self._past[name].append((dict(state.before), dict(state.after)))
            state.before.update(state.after)

    def gather(self) -> None:
        """End a forced recurrence: stack the states before and after every position, [S, T, ...]."""
        self._let_map(images)
        for name, state in self.states.items():
            for key in state.after:
                state.before[key] = torch.cat([before[key] for before, _ in self._past[name]], dim=1)
                state.after[key] = torch.cat([after[key] for _, after in self._past[name]], dim=1)
