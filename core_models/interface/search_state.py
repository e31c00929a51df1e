"""The interface and the results of a search, and the choice of candidates that all searches share.

Anything that can `start`, `step` and `select` can be searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from core_models.config import SearchConfig
from core_models.text.vocabulary import BOS, PAD

IMPOSSIBLE = -math.inf


class Scores(NamedTuple):
    """Scores of the next word: values [S, K, V], log-probabilities if `normalized`, else logits."""

    values: Tensor
    normalized: bool

    def log_probs(self) -> Tensor:
        """Log-probabilities [S, K, V], in nats."""
        return self.values if self.normalized else torch.log_softmax(self.values, dim=-1)


class FixedShapes(NamedTuple):
    """Asks for steps whose shapes do not depend on their position: at most `steps`, each with so many beams."""

    beams: int
    steps: int


class Steppable(Protocol):
    def start(self, encoded: Any, fixed: FixedShapes | None = None) -> Any: ...
    def step(self, words: Tensor, state: Any) -> tuple[Scores, Any]: ...


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis: piece numbers without EOS, and its scores.

    score: the sum of `token_log_probs` (nats, with EOS when finished); normalized: the score under the length penalty
    of its search, the score itself where there is none (sampling).
    """

    words: list[int]
    score: float
    normalized: float
    finished: bool
    token_log_probs: list[float]

    def with_length_penalty(self, config: SearchConfig) -> Hypothesis:
        """The same with `normalized` under the length penalty of a search."""
        return replace(self, normalized=self.score / float(penalty(len(self.token_log_probs), config)))


@dataclass
class Tree:
    """All candidates of one sentence's search, row by row: see `analyses.beam` for the meaning of each list."""

    step: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    word: list[int] = field(default_factory=list)
    log_prob: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    normalised: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    fate: list[str] = field(default_factory=list)
    best: int = -1


@dataclass(frozen=True)
class SearchResult:
    """The n best hypotheses of a sentence, best first, and its tree if it was recorded."""

    hypotheses: list[Hypothesis]
    tree: Tree | None = None


def penalty(length: Tensor | float, config: SearchConfig) -> Any:
    """The length penalty, divisor of a score: ((5 + length) / 6)^alpha (GNMT) or length^alpha.

    length: with EOS; the search's `penalty_offset` is added.
    """
    counted = length + config.penalty_offset
    base = (5 + counted) / 6 if config.penalty == "gnmt" else counted
    return base**config.length_penalty


def candidates(scores: Scores, so_far: Tensor, forced: Tensor | None, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `width` best continuations of each sentence: their scores, parents and words, [S, C] each, best first.

    Takes the best of every row first, then one flat top-k. Logits are normalized before that: PyTorch's log-softmax is
    one fused pass, cheaper than log-sum-exp alone. forced [S]: the forced word, or -1.
    """
    values = scores.log_probs()
    vocabulary = values.shape[-1]
    values[..., PAD] = values[..., BOS] = IMPOSSIBLE  # a list of both would be uploaded at every step
    if forced is not None:
        other = (forced[:, None] >= 0) & (torch.arange(vocabulary, device=values.device) != forced[:, None])
        values.masked_fill_(other[:, None], IMPOSSIBLE)
    best, words = values.topk(min(width, vocabulary), dim=-1)
    total = (so_far[..., None] + best).flatten(1)
    best_totals, flat = total.topk(min(width, total.shape[1]), dim=-1)
    return best_totals, flat // best.shape[-1], words.flatten(1).gather(1, flat)


def differences(totals: Sequence[float]) -> list[float]:
    return [after - before for before, after in zip([0.0, *totals], totals, strict=False)]


def mixture(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of probabilities, [...] each."""
    return torch.logsumexp(torch.stack([*log_probs]), dim=0) - math.log(len(log_probs))
