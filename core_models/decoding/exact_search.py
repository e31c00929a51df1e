"""Exact search: the most probable of all outputs up to a length, by depth-first search (Stahlberg and Byrne 2019).

A prefix only loses log-probability as it grows, so one that is not above the best complete output known so far needs no
look; what a beam found is the first bound. A state that was stepped is used up, so a copy of it is stepped. Knows no
architecture and no length penalty.
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
    """What an exact search found of one sentence.

    words: the best output without EOS, None where nothing is above the bound it was given; log_prob is then the bound.
    nodes: the prefixes that were stepped. decided: False where `most_nodes` ended the search before it was through.
    """

    words: list[int] | None
    log_prob: float
    nodes: int
    decided: bool


@dataclass
class _Node:
    """A prefix that was stepped, with the continuations still to be looked at, best first."""

    state: Any
    row: int
    prefix: list[int]  # BOS first
    words: Tensor
    totals: Tensor
    next: int = 0

    def take(self, most: int, best: float) -> slice:
        """The next continuations above the best complete output; an empty slice when there are none left."""
        above = int((self.totals[self.next : self.next + most] > best).sum())
        taken = slice(self.next, self.next + above)
        self.next += above
        return taken


@torch.inference_mode()
def exact_search(
    model: Steppable,
    encoded: Any,
    limit: int,
    bound: float = IMPOSSIBLE,
    most_nodes: int = 10_000,
    device: torch.device | str = "cpu",
) -> Exact:
    """Search one encoded sentence. limit: the longest output, EOS included; bound: log P (nats) of an output known."""
    start = torch.tensor([BOS], device=device), torch.zeros(1, dtype=torch.float64, device=device)
    stack = [_Node(model.start(encoded), 0, [], *start)]
    best, found, nodes = bound, None, 0
    while stack:
        node = stack[-1]
        if nodes >= most_nodes and bool((node.totals[node.next :] > best).any()):
            return Exact(found, best, nodes, False)
        taken = node.take(min(TOGETHER, most_nodes - nodes), best)
        words, totals = node.words[taken], node.totals[taken]
        if not len(words):
            stack.pop()
            continue
        nodes += len(words)
        # A copy of the parent's state: stepping uses up the state it is given, and siblings come later.
        rows = torch.full((1, len(words)), node.row, device=device)
        branch = node.state.select(torch.zeros(1, dtype=torch.long, device=device), rows)
        scores, stepped = model.step(words[None], branch)
        values = scores.log_probs()
        grown = totals[:, None] + values[0]  # [children, V]
        prefixes = [[*node.prefix, word] for word in words.tolist()]
        ended, child = grown[:, EOS].max(0)
        if float(ended) > best:
            best, found = float(ended), prefixes[int(child)][1:]
        if len(node.prefix) + 2 > limit:  # with one more word and EOS a child would be too long
            continue
        grown[:, [PAD, BOS, EOS]] = IMPOSSIBLE
        for row in reversed(range(len(words))):
            above = (grown[row] > best).nonzero()[:, 0]
            ordered, order = grown[row][above].sort(descending=True)
            stack.append(_Node(stepped, row, prefixes[row], above[order], ordered))
    return Exact(found, best, nodes, True)
