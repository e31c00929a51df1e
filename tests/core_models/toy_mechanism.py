"""An example of a mechanism: it changes the stream at one place, the stronger the more it changed it before.

All a mechanism can do is here: options, a place chosen by them, parameters, both forms of time (`shift` at the readout,
a true recurrence at the attention), a trace, a loss term, a prediction. It is no idea of any paper."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    Prediction,
    View,
)
from core_models.text.batches import Batch

PLACES = tuple(hook_point.name for hook_point in HookPoint)
WIDTHS = {
    "ENCODER_STACK_OUTPUT": "memory", "ENERGY": "energy", "TRANSITION": "transition", "READOUT": "readout",
    "OUTPUT": "output", "ENCODER_HEADS": "head", "DECODER_HEADS": "head", "DECODER_CROSS_HEADS": "head",
}  # else stream  # fmt: skip
RECURRENT = (HookPoint.BEFORE_ATTENTION, HookPoint.ENERGY, HookPoint.TRANSITION, HookPoint.AFTER_ATTENTION)


class ToyOptions(Options):
    hook_point: Literal[PLACES] = "OUTPUT"
    weight: float = Field(0.1, ge=0, description="of the loss term and of the prediction")


class Toy(Mechanism):
    """x + level * tanh(W x), where the level of a position is its own mean square change and half the level before."""

    Options = ToyOptions
    options: ToyOptions

    def __init__(self, spec: BackboneSpec, options: ToyOptions) -> None:
        super().__init__(spec, options)
        self.hook_point = HookPoint[options.hook_point]
        self.hook_points = (
            self.hook_point,
            HookPoint.OUTPUT,
        )  # always at the output too: there it notes what its prediction reads
        width = spec.widths.get(WIDTHS.get(options.hook_point, "stream"), spec.widths["stream"])
        self.change = nn.Linear(width, width)
        self.predict = nn.Linear(spec.widths["output"], spec.widths["output"])

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        if not self.hook_point.name.startswith("ENCODER"):
            return {}
        own_state.record("level", ("source",), own_state.notes["level"])
        return {"level": own_state.notes["level"]}  # the encoder's notes end here; a sentence tensor lasts

    def start(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        carried = self.hook_point in (*RECURRENT, HookPoint.READOUT, HookPoint.OUTPUT)
        return {"level": memory.new_zeros(len(memory), 1)} if carried else {}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point is self.hook_point:
            x = self._changed(x, view, own_state)
        if hook_point is HookPoint.OUTPUT:
            own_state.notes["output"] = x
            if not self.hook_point.name.startswith("ENCODER"):
                own_state.record("level", ("target",), lambda: self._level(own_state))
        return x

    def _changed(self, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        change = torch.tanh(self.change(x))
        if self.hook_point is HookPoint.ENERGY:  # [S, N, I, a]: a sum over the source must leave the padding out
            change = change * view.memory_mask[:, None, :, None]
        level = change.square().flatten(2).sum(-1) / x.shape[-1]  # [S, N]
        if self.hook_point in RECURRENT:
            level = own_state.after["level"] = level + own_state.before["level"] / 2
        elif self.hook_point in (HookPoint.READOUT, HookPoint.OUTPUT):
            level = level + own_state.shift("level", level) / 2
        own_state.notes["level"] = level
        return x + level.view(*level.shape, *[1] * (x.dim() - 2)) * change  # [S, N, 1] or, at ENERGY, [S, N, 1, 1]

    def _level(
        self, own_state: MechanismState
    ) -> Tensor:  # [S, T]; of a forced recurrence the backbone stacks what was left
        return own_state.after["level"] if self.hook_point in RECURRENT else own_state.notes["level"]

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        return [Prediction("toy", torch.tanh(self.predict(own_state.notes["output"])), weight=self.options.weight)]

    def losses(self, view: View, own_state: MechanismState, batch: Batch) -> dict[str, Tensor]:
        if self.hook_point.name.startswith("ENCODER"):
            return {"toy_level": self.options.weight * (own_state.sentence["level"] * batch.source_mask).sum(1)}
        return {"toy_level": self.options.weight * (self._level(own_state) * batch.target_mask).sum(1)}
