"""The two stacks of layers, with the hook points and trace axes of each side."""

from __future__ import annotations

from typing import Literal

from core_models.interface.mechanism import HookPoint

Side = Literal["encoder", "decoder"]
Sides = Literal["encoder", "decoder", "both"]
POSITIONS = {"encoder": "source", "decoder": "target"}  # the axis of a trace
LAYER_INPUT = {"encoder": HookPoint.ENCODER_LAYER_INPUT, "decoder": HookPoint.DECODER_LAYER_INPUT}
SUBLAYER = {"encoder": HookPoint.ENCODER_SUBLAYER, "decoder": HookPoint.DECODER_SUBLAYER}
STACK_OUTPUT = {"encoder": HookPoint.ENCODER_STACK_OUTPUT, "decoder": HookPoint.DECODER_STACK_OUTPUT}


def sides_of(side: Sides) -> tuple[Side, ...]:
    return ("encoder", "decoder") if side == "both" else (side,)
