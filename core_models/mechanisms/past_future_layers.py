"""PAST and FUTURE layers (Zheng 2018): recurrent states of the translated and the untranslated source contents.

    s''_t = GRU_m(s'_t, [s^P_{t-1}; s^F_{t-1}])        before the attention, which therefore depends on both
    s^P_t = GRU(s^P_{t-1}, c_t),  s^P_0 = 0            translated contents
    s^F_t = GRU, GRU-o or GRU-i (s^F_{t-1}, c_t)       untranslated contents; s^F_0 is the summary of the source
    read  = tanh(... + W_4 s^P_t + W_5 s^F_t)

The losses of section 4.4 predict the word from the change of each layer's state (`past_future_heads`). States at
padding are never read (D12), as padding follows the words. Where paper and released code differ (D1 to D8 of the
specification), the code is the default and the paper an option.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from core_models.interface.mechanism import (
    BackboneSpec,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    Prediction,
    View,
    reject_unused_options,
)
from core_models.layers.deferred_linear import images
from core_models.mechanisms.past_future_heads import ChangeHead
from core_models.mechanisms.past_future_units import ContentUnit, PlainUnit, future_unit
from core_models.settings import ConfigError
from core_models.text.vocabulary import EOS

Side = Literal["past", "future"]
# Options that are read only if another option has, or contains, this value.
REQUIRES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("future_unit", "extra_map", "future_start"), ("layers", "future")),
}
LOSS_OPTIONS = ("delta", "softmax", "weight", "objective", "test_loss")


class PastFutureOptions(Options):
    layers: tuple[Side, ...] = ("past", "future")
    future_unit: Literal["gru", "gru-o", "gru-i"] = "gru-i"
    extra_map: bool = Field(True, description="gru-o and gru-i: a map after the subtraction, as released (D3)")
    future_start: Literal["summary", "zero"] = Field("summary", description="s^F_0 (D6, Table 8)")
    decoder_feed: Literal["previous", "current"] = Field(
        "previous",
        description="states read by the decoder: the previous step's before attention, or this step's after it (D1)",
    )
    attention: Literal["via_state", "additive"] = Field(
        "via_state", description="additive: the attention's energy also has terms of the states (Eq. 7, 17, 19; D2)"
    )
    losses: tuple[Side, ...] = ()
    delta: Literal["mapped", "plain"] = Field(
        "mapped", description="what predicts the word: tanh of mapped states, or their plain difference (D4)"
    )
    softmax: Literal["own", "tied"] | None = Field(
        None, description="output matrix of the losses; default: tied, or own if the output matrix does not embed words"
    )
    weight: float = Field(1.0, ge=0, description="weight of each loss")
    objective: Literal["sum", "mean"] = Field(
        "sum", description="how all loss terms, including the translation's, are combined (D7)"
    )
    test_loss: Literal["none", "step_mean_prob"] | None = Field(
        None, description="average the losses' distributions into the system's (D8); default: yes if there are losses"
    )

    @field_validator("layers", "losses", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_combinations(self) -> PastFutureOptions:
        if not self.layers or len(set(self.layers)) < len(self.layers):
            raise ValueError(f"layers: {list(self.layers)}; give past, future, or both, each once")
        if len(set(self.losses)) < len(self.losses):
            raise ValueError(f"losses: {list(self.losses)}; give each once")
        for side in self.losses:
            if side not in self.layers:
                raise ValueError(f"losses: {side} is a loss of the {side} layer, and layers are {list(self.layers)}")
        reject_unused_options(self, REQUIRES)
        if self.future_unit == "gru":
            reject_unused_options(self, {"extra_map": ("future_unit", "gru-i")})
        if not self.losses:
            reject_unused_options(self, dict.fromkeys(LOSS_OPTIONS, ("losses", self.layers[0])))
        return self


class PastFutureLayers(Mechanism):
    """PRNN, FRNN or both, in a decoder that steps through time."""

    Options = PastFutureOptions
    options: PastFutureOptions
    hook_points: Sequence[HookPoint]

    def __init__(self, spec: BackboneSpec, options: PastFutureOptions) -> None:
        super().__init__(spec, options)
        if spec.summary is None:
            raise ConfigError("PAST and FUTURE layers step through time; take a recurrent backbone, rnnsearch")
        self.reads_summary = "future" in options.layers and options.future_start == "summary"
        self.sides: tuple[Side, ...] = tuple(sorted(options.layers, reverse=True))  # past, future
        self.summary: Callable[[Tensor, Tensor], Tensor] = spec.summary
        self.embed = spec.target_embedding
        width, context = spec.widths["stream"], spec.widths["context"]
        self.width, states_width = width, len(self.sides) * width
        self.units = nn.ModuleDict({side: self._unit(side, context) for side in self.sides})
        self.to_readout = _linear(states_width, spec.widths["readout"])
        previous = options.decoder_feed == "previous"
        self.meet = PlainUnit(states_width, width).unit if previous else None  # GRU_m
        self.to_gates = None if previous else _linear(states_width, spec.widths["transition"])
        energy = spec.widths["energy"]
        additive = options.attention == "additive"
        self.to_energy = nn.ModuleDict({side: _linear(width, energy) for side in self.sides} if additive else {})
        untied = options.softmax == "own" or (options.softmax is None and not spec.tied)
        self.heads = nn.ModuleDict(
            {side: ChangeHead(spec, width, options.delta, untied) for side in self.sides if side in options.losses}
        )
        self.may_mix = bool(self.heads)
        self.mixes = self.may_mix and options.test_loss != "none"
        if options.objective == "mean":
            self.main_weight = 1 / (1 + len(self.heads))
        self.hook_points = self._hook_points()

    def _unit(self, side: Side, context: int) -> ContentUnit:
        if side == "past":
            return PlainUnit(context, self.width)
        return future_unit(self.options.future_unit, context, self.width, self.options.extra_map)

    def _hook_points(self) -> tuple[HookPoint, ...]:
        before = (HookPoint.BEFORE_ATTENTION,) if self.meet is not None else ()
        energy = (HookPoint.ENERGY,) if self.to_energy else ()
        return (*before, *energy, HookPoint.TRANSITION, HookPoint.READOUT)

    @property
    def attended_maps(self) -> Sequence[nn.Linear]:
        return [linear for unit in self.units.values() for linear in unit.from_context]

    def start(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Initial states s^P_0 = 0 and s^F_0, the backbone's summary of the source: [S, 1, d] each."""
        zero = memory.new_zeros(len(memory), 1, self.width)
        states = dict.fromkeys(self.sides, zero)
        if self.reads_summary:
            states["future"] = self.summary(memory, memory_mask)[:, None]
        return states

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point is HookPoint.BEFORE_ATTENTION:
            assert self.meet is not None
            (entered,) = own_state.linear([self.meet.from_input], self._concatenated(own_state.before))
            (recurrent,) = own_state.linear([self.meet.from_state], x)
            return self.meet.combine(entered, recurrent, x)
        if hook_point is HookPoint.ENERGY:
            terms = [own_state.linear([self.to_energy[side]], own_state.before[side])[0] for side in self.sides]
            return x + sum(terms)[:, :, None]  # type: ignore[index]
        if hook_point is HookPoint.TRANSITION:
            self._advance(own_state)
            return (
                x
                if self.to_gates is None
                else x + own_state.linear([self.to_gates], self._concatenated(own_state.after))[0]
            )
        record_contents(self, view, own_state)
        return x + self.to_readout(self._concatenated(own_state.after))

    def _concatenated(self, states: Mapping[str, Tensor]) -> Tensor:
        """The states [s^P; s^F] of the configured layers."""
        return torch.cat([states[side] for side in self.sides], dim=-1)

    def _advance(self, own_state: MechanismState) -> None:
        """Update the states of all layers by the attended context."""
        for side, context in self.split_by_side(own_state.attended).items():
            unit, state = self.units[side], own_state.before[side]
            recurrent = own_state.linear(unit.from_state, state)
            own_state.after[side] = unit.combine(context, recurrent, state, own_state.linear)

    def split_by_side(self, attended: Sequence[Tensor]) -> dict[str, Sequence[Tensor]]:
        """The images of the attended context under the maps of each layer's unit."""
        remaining, images_of = list(attended), dict[str, Sequence[Tensor]]()
        for side, unit in self.units.items():
            count = len(unit.from_context)
            images_of[side], remaining = remaining[:count], remaining[count:]
        return images_of

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        """Predictions of the word from the change of each layer's state (section 4.4)."""
        return [
            Prediction(
                side,
                head(*self.change_of(side, own_state)),
                matrix=head.matrix,
                bias=head.bias,
                weight=self.options.weight * self.main_weight,
                mixes=self.mixes,
            )
            for side, head in self.heads.items()
        ]

    def change_of(self, side: str, own_state: MechanismState) -> tuple[Tensor, Tensor]:
        """The states of a layer, minuend and subtrahend, whose difference should be the word's content.

        FUTURE: s^F_{t-1} and s^F_t; PAST: s^P_t and s^P_{t-1}.
        """
        before, after = own_state.before[side], own_state.after[side]
        return (after, before) if side == "past" else (before, after)

    def begin_from(self, spec: BackboneSpec, fresh: Collection[str]) -> None:
        for side, head in self.heads.items():
            if f"heads.{side}.matrix" in fresh:
                head.copy()


def _linear(inputs: int, outputs: int) -> nn.Linear:
    linear = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def record_contents(layers: PastFutureLayers, view: View, own_state: MechanismState) -> None:
    """Record measures of each layer at READOUT of a forced pass.

    SIDE.state: s_t; SIDE.norm: |s_t|; SIDE.change: |s_t - s_{t-1}|; SIDE.update_gate: the mean share of the state that
    is kept; SIDE.cosine_context: cosine of the change (signed so that it should be c_t) with c_t as the layer's unit
    reads it; with a loss SIDE.cosine_word: cosine of the predicting vector with the matrix row that scores the correct
    word. With both layers and s^F_0 = summary of the source: whole.cosine and whole.distance of s^P_t + s^F_t and
    s^F_0, the distance in units of |s^F_0|.
    """
    axes = ("target",)
    for side in layers.sides:
        own_state.record(f"{side}.state", ("target", "unit"), own_state.after[side])
        measures = {
            "norm": _norm,
            "change": _change,
            "update_gate": _update_gate,
            "cosine_context": _cosine_with_context,
        }
        if side in layers.heads:
            measures["cosine_word"] = _cosine_with_word
        for name, measure in measures.items():
            own_state.record(f"{side}.{name}", axes, partial(measure, layers, side, view, own_state))
    if len(layers.sides) == 2 and layers.reads_summary:
        own_state.record(
            "whole.cosine", axes, lambda: cosine_similarity(*_sum_and_summary(layers, view, own_state), dim=-1)
        )
        own_state.record("whole.distance", axes, lambda: _distance(*_sum_and_summary(layers, view, own_state)))


def _norm(layers: PastFutureLayers, side: str, view: View, own_state: MechanismState) -> Tensor:
    return own_state.after[side].norm(dim=-1)


def _change(layers: PastFutureLayers, side: str, view: View, own_state: MechanismState) -> Tensor:
    return (own_state.after[side] - own_state.before[side]).norm(dim=-1)


def _context(layers: PastFutureLayers, side: str, view: View) -> tuple[Tensor, ...]:
    return images(layers.units[side].from_context, view.context)


def _update_gate(layers: PastFutureLayers, side: str, view: View, own_state: MechanismState) -> Tensor:
    unit = layers.units[side]
    recurrent = images(unit.from_state, own_state.before[side])
    return unit.gated(_context(layers, side, view), recurrent, images)[0].mean(-1)


def _cosine_with_context(layers: PastFutureLayers, side: str, view: View, own_state: MechanismState) -> Tensor:
    minuend, subtrahend = layers.change_of(side, own_state)
    content = layers.units[side].content(_context(layers, side, view))
    return cosine_similarity(minuend - subtrahend, content, dim=-1)


def _cosine_with_word(layers: PastFutureLayers, side: str, view: View, own_state: MechanismState) -> Tensor:
    """Cosine of the predicting vector with the correct word at t, which is the input at t + 1, and EOS at the end."""
    last = torch.full_like(view.words[:, :1], EOS)
    following = torch.cat([view.words[:, 1:], last], dim=1)
    is_word = torch.cat([view.mask[:, 1:], torch.zeros_like(view.mask[:, :1])], dim=1)
    words = torch.where(is_word, following, EOS)
    head = layers.heads[side]
    return cosine_similarity(head(*layers.change_of(side, own_state)), head.rows(words), dim=-1)


def _sum_and_summary(layers: PastFutureLayers, view: View, own_state: MechanismState) -> tuple[Tensor, Tensor]:
    """The sum s^P_t + s^F_t [S, T, d] and the initial summary of the source [S, 1, d]."""
    return own_state.after["past"] + own_state.after["future"], layers.summary(view.memory, view.memory_mask)[:, None]


def _distance(sums: Tensor, summary: Tensor) -> Tensor:
    return (sums - summary).norm(dim=-1) / summary.norm(dim=-1)
