"""The smallest thing a search can search: a table of logits for every sentence and every recent history.

What comes next depends on the whole history through a small hash: a beam that is reordered wrongly gives itself away.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.decoding import Scores
from core_models.text.vocabulary import BOS

HISTORIES = 97


@dataclass
class TableState:
    rows: Tensor  # [S]
    histories: Tensor  # [S, K]

    def select(self, sentences: Tensor | None, parents: Tensor) -> TableState:
        rows, histories = (
            (self.rows, self.histories) if sentences is None else (self.rows[sentences], self.histories[sentences])
        )
        return TableState(rows, histories.gather(1, parents))


class Table:
    """`start` is given a table of logits [S, HISTORIES, V]."""

    def start(self, encoded: Tensor) -> TableState:
        self.logits = encoded
        return TableState(torch.arange(len(encoded)), torch.zeros(len(encoded), 1, dtype=torch.long))

    def step(self, words: Tensor, state: TableState) -> tuple[Scores, TableState]:
        histories = extended(state.histories, words)
        return Scores(self.logits[state.rows[:, None], histories], False), TableState(state.rows, histories)


def extended(history, word):
    return (history * 31 + word) % HISTORIES


def random_table(sentences: int, words: int, seed: int, spread: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(sentences, HISTORIES, words, dtype=torch.float64, generator=generator)


def next_log_probs(table: Tensor, words: list[int]) -> list[float]:
    """log P of every next word after `words` for one sentence's table [HISTORIES, V]."""
    history = 0
    for word in [BOS, *words]:
        history = extended(history, word)
    return torch.log_softmax(table[history], dim=-1).tolist()
