"""Exact search: the most probable of all outputs up to a length, by depth-first search (Stahlberg and Byrne 2019).

Log-probability decreases as a prefix grows, so a prefix is pruned unless it is above the best complete output so far;
the result of beam search is the initial bound. Stepping consumes a state, so a copy of it is stepped. There is no
length penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core_models.interface.search_state import IMPOSSIBLE, Steppable
from core_models.text.vocabulary import BOS, EOS, PAD

TOGETHER = 16  # children of a node that are stepped at once


@dataclass(frozen=True)
class Exact:
    """The result of an exact search for one sentence.

    words: the best output without EOS, None if no output is above the bound; log_prob is then the bound. nodes: the
    prefixes that were stepped. decided: False if the search stopped at `most_nodes`.
    """

    words: list[int] | None
    log_prob: float
    nodes: int
    decided: bool


@dataclass
class _Node:
    """A prefix that was stepped, with its unvisited continuations, best first."""

    state: Any
    row: int
    prefix: list[int]  # BOS first
    words: Tensor
    totals: Tensor
    next: int = 0

    def take(self, most: int, best: float) -> slice:
        """The next continuations above the best complete output; an empty slice if none is left."""
        count = int((self.totals[self.next : self.next + most] > best).sum())
        part = slice(self.next, self.next + count)
        self.next += count
        return part


@torch.inference_mode()
def exact_search(
    model: Steppable,
    encoded: Any,
    limit: int,
    bound: float = IMPOSSIBLE,
    most_nodes: int = 10_000,
    device: torch.device | str = "cpu",
) -> Exact:
    """Search one encoded sentence. limit: the longest output with EOS; bound: log P (nats) of a known output."""
    start = torch.tensor([BOS], device=device), torch.zeros(1, dtype=torch.float64, device=device)
    stack = [_Node(model.start(encoded), 0, [], *start)]
    best, best_words, nodes = bound, None, 0
    while stack:
        node = stack[-1]
        if nodes >= most_nodes and bool((node.totals[node.next :] > best).any()):
            return Exact(best_words, best, nodes, False)
        part = node.take(min(TOGETHER, most_nodes - nodes), best)
        words, totals = node.words[part], node.totals[part]
        if not len(words):
            stack.pop()
            continue
        nodes += len(words)
        # A copy of the parent's state: stepping consumes a state, and siblings still need it.
        rows = torch.full((1, len(words)), node.row, device=device)
        branch = node.state.select(torch.zeros(1, dtype=torch.long, device=device), rows)
        scores, stepped = model.step(words[None], branch)
        values = scores.log_probs()
        extended = totals[:, None] + values[0]  # [children, V]
        prefixes = [[*node.prefix, word] for word in words.tolist()]
        ended, child = extended[:, EOS].max(0)
        if float(ended) > best:
            best, best_words = float(ended), prefixes[int(child)][1:]
        if len(node.prefix) + 2 > limit:  # with one more word and EOS a child would be too long
            continue
        extended[:, [PAD, BOS, EOS]] = IMPOSSIBLE
        for row in reversed(range(len(words))):
            candidates = (extended[row] > best).nonzero()[:, 0]
            ordered, order = extended[row][candidates].sort(descending=True)
            stack.append(_Node(stepped, row, prefixes[row], candidates[order], ordered))
    return Exact(best_words, best, nodes, True)
