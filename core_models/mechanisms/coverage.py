"""Coverage (Tu 2016): the attention sees how far each source word has been translated.

    e_{t,i} = v . tanh(... + C cov_{t-1,i}),  with the attention of each word before position t accumulated in cov.

Linguistic coverage sums attention, divided by a word's fertility phi_i = N sigmoid(u . h_i), its expected number of
target words; it may be subtracted from one instead, or be bounded by one. The sum may be replaced by the maximum or the
mean so far, the max- and mean-pooling that an early version of the code released by Tu 2016 describes and does not use.
Neural coverage is a small gated unit per word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    View,
    reject_unused_options,
)
from core_models.layers.precision import wide, widened

# Options that are read only if another option has this value.
REQUIRES: Mapping[str, tuple[str, str]] = {"units": ("form", "neural")}


class CoverageOptions(Options):
    form: Literal["additive", "subtractive", "bounded", "max", "mean", "neural"] = Field(
        "additive",
        description="attention added up; taken from one; added up to one; its maximum or mean so far; or the state of "
        "a gated unit",
    )
    fertility: bool = Field(True, description="attention is divided by how many words a word may become; not neural")
    most_words: float = Field(2.0, gt=0, description="N, the largest fertility")
    units: int = Field(10, gt=0, description="width of neural coverage")

    @model_validator(mode="after")
    def _possible(self) -> CoverageOptions:
        reject_unused_options(self, REQUIRES)
        if self.form == "neural":
            reject_unused_options(self, dict.fromkeys(("fertility", "most_words"), ("form", "additive")))
        if not self.fertility:
            reject_unused_options(self, {"most_words": ("fertility", "true")})
        return self


@wide
def accumulated(
    coverage: Tensor, weights: Tensor, fertility: Tensor | None, form: str, step: Tensor | None = None
) -> Tensor:
    """Coverage cov_t from cov_{t-1} and the attention at t, [S, N, I] each.

    fertility [S, I] or None; step [S, N, 1]: t, needed for the mean.
    """
    share = weights if fertility is None else weights / fertility[:, None]
    if form == "subtractive":
        return coverage - share
    if form == "max":
        return torch.maximum(coverage, share)
    if form == "mean":
        assert step is not None
        return coverage + (share - coverage) / step
    covered = coverage + share
    return covered.clamp(max=1) if form == "bounded" else covered


class NeuralCoverage(nn.Module):
    """A gated unit for each source word, with inputs attention, annotation and s_{t-1}.

    The update gate weighs the new state, as in the released code: cov_t = (1 - u) cov_{t-1} + u tanh(...).
    """

    def __init__(self, memory: int, state: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.from_memory = nn.Linear(memory, 3 * units)
        self.from_state = nn.Linear(state, 3 * units, bias=False)
        self.from_attention = nn.Linear(1, 3 * units, bias=False)
        self.from_coverage = nn.Linear(units, 3 * units, bias=False)
        for linear in (self.from_memory, self.from_state, self.from_attention, self.from_coverage):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.from_memory.bias)

    def forward(self, coverage: Tensor, weights: Tensor, planned: Tensor, state: Tensor) -> Tensor:
        """The new coverage of cov_{t-1} [S, N, I, u], attention [S, N, I], planned [S, I, 3 u], state [S, N, 3 u]."""
        entered = planned[:, None] + state[:, :, None] + self.from_attention(weights[..., None].to(planned.dtype))
        input_gates, input_candidate = entered.split((2 * self.units, self.units), dim=-1)
        old_gates, old_candidate = self.from_coverage(coverage).split((2 * self.units, self.units), dim=-1)
        reset, update = torch.sigmoid(input_gates + old_gates).chunk(2, dim=-1)
        return coverage + update * (torch.tanh(input_candidate + reset * old_candidate) - coverage)


class Coverage(Mechanism):
    """Coverage: one number, or a few, per source word and hypothesis."""

    Options = CoverageOptions
    options: CoverageOptions
    hook_points: Sequence[HookPoint] = (HookPoint.ENERGY, HookPoint.AFTER_ATTENTION, HookPoint.READOUT)

    def __init__(self, spec: BackboneSpec, options: CoverageOptions) -> None:
        super().__init__(spec, options)
        memory, neural = spec.widths["memory"], options.form == "neural"
        self.cell = NeuralCoverage(memory, spec.widths["stream"], options.units) if neural else None
        self.fertility = None if neural or not options.fertility else nn.Linear(memory, 1, bias=False)
        self.to_energy = nn.Linear(options.units if neural else 1, _energy(spec), bias=False)
        for linear in filter(None, (self.fertility, self.to_energy)):
            nn.init.xavier_uniform_(linear.weight)

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Fertilities [S, I], or the annotations' part of the gated unit [S, I, 3 u]."""
        if self.cell is not None:
            return {"planned": self.cell.from_memory(memory)}
        if self.fertility is None:
            return {}
        fertility = self.options.most_words * torch.sigmoid(self.fertility(memory)[..., 0])
        own_state.record("fertility", ("source",), fertility)
        return {"fertility": fertility}

    def start(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Initial coverage cov_0 [S, 1, I] or [S, 1, I, u], nothing covered; for a mean also the step count."""
        if self.cell is not None:
            return {"coverage": memory.new_zeros(len(memory), 1, memory.shape[1], self.cell.units)}
        least = memory.new_zeros(len(memory), 1, memory.shape[1], dtype=widened(memory.dtype))
        if self.options.form == "mean":
            return {"coverage": least, "steps": least.new_zeros(len(memory), 1, 1)}
        return {"coverage": least + 1 if self.options.form == "subtractive" else least}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point is HookPoint.ENERGY:
            coverage = own_state.before["coverage"].to(x.dtype)
            return x + self.to_energy(coverage if self.cell is not None else coverage[..., None])
        if hook_point is HookPoint.AFTER_ATTENTION:
            if self.options.form == "mean":
                own_state.after["steps"] = own_state.before["steps"] + 1
            own_state.after["coverage"] = self._covered(view, own_state)
            return x
        axes = ("target", "source") if self.cell is None else ("target", "source", "unit")
        own_state.record("coverage", axes, own_state.after["coverage"])
        return x

    def _covered(self, view: View, own_state: MechanismState) -> Tensor:
        before = own_state.before["coverage"]
        if self.cell is not None:
            (state,) = own_state.linear([self.cell.from_state], view.previous)
            return self.cell(before, view.weights, own_state.sentence["planned"], state)
        step = own_state.after["steps"] if self.options.form == "mean" else None
        return accumulated(before, view.weights, own_state.sentence.get("fertility"), self.options.form, step)


def _energy(spec: BackboneSpec) -> int:
    """The width of the attention's energies; a backbone without them is rejected by its hook points."""
    return spec.widths.get("energy", spec.widths["stream"])
