"""Several systems decoded together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from core_models.interface.search_state import Scores, Steppable, mixture


class Ensemble:
    """Several systems with one target vocabulary, decoded together: the mean of their probabilities at every step.

    Each system keeps its own state; `encoded` is a list, one entry a system.
    """

    def __init__(self, systems: Sequence[Steppable]) -> None:
        self.systems = list(systems)

    def start(self, encoded: Sequence[Any]) -> EnsembleState:
        return EnsembleState([system.start(one) for system, one in zip(self.systems, encoded, strict=True)])

    def step(self, words: Tensor, state: EnsembleState) -> tuple[Scores, EnsembleState]:
        values, states = [], []
        for system, own in zip(self.systems, state.states, strict=True):
            scores, own = system.step(words, own)
            values.append(scores.log_probs())
            states.append(own)
        return Scores(mixture(values), True), EnsembleState(states)


@dataclass
class EnsembleState:
    states: list[Any]

    def select(self, sentences: Tensor | None, parents: Tensor) -> EnsembleState:
        return EnsembleState([state.select(sentences, parents) for state in self.states])
