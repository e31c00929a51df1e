"""Ensemble decoding with several systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from core_models.interface.search_state import FixedShapes, Scores, Steppable, mixture


class Ensemble:
    """Several systems with one target vocabulary; each step takes the mean of their probabilities.

    Each system has its own state; `encoded` is a list with one entry per system.
    """

    def __init__(self, systems: Sequence[Steppable]) -> None:
        self.systems = list(systems)

    def start(self, encoded: Sequence[Any], fixed: FixedShapes | None = None) -> EnsembleState:
        return EnsembleState([system.start(each, fixed) for system, each in zip(self.systems, encoded, strict=True)])

    def step(self, words: Tensor, state: EnsembleState) -> tuple[Scores, EnsembleState]:
        values, states = [], []
        for system, system_state in zip(self.systems, state.states, strict=True):
            scores, system_state = system.step(words, system_state)
            values.append(scores.log_probs())
            states.append(system_state)
        return Scores(mixture(values), True), EnsembleState(states)


@dataclass
class EnsembleState:
    states: list[Any]

    def select(self, sentences: Tensor | None, parents: Tensor) -> EnsembleState:
        return EnsembleState([state.select(sentences, parents) for state in self.states])
