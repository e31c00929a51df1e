"""Bags of past and future words and mean contents at every target position, by cumulative sums (Zheng 2019).

A bag's log-probability needs the sum of its words' logits, which is one dot product with the cumulative sum of their
embeddings: no tensor has size [S, T, V] or [S, T, T]. Sums are in float32 or better and exclude padding.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from core_models.interface.mechanism import Prediction
from core_models.layers.precision import widened
from core_models.layers.vocabulary_head import one_logit
from core_models.losses.positions import Positions
from core_models.text.vocabulary import BOS, PAD

Side = Literal["past", "future"]


def running_sums(values: Tensor, side: Side, inclusive: bool) -> Tensor:
    """Sums over all positions up to t, or from t on, with or without t: [S, T, ...] -> [S, T, ...]."""
    nothing = torch.zeros_like(values[:, :1])
    if side == "past":
        sums = values.cumsum(1)
        return sums if inclusive else torch.cat([nothing, sums[:, :-1]], dim=1)
    sums = values.flip(1).cumsum(1).flip(1)
    return sums if inclusive else torch.cat([sums[:, 1:], nothing], dim=1)


def running_means(states: Tensor, mask: Tensor, side: Side, inclusive: bool = True) -> Tensor:
    """Means of the real states [S, T, d] up to or from t on; zero without any."""
    wide = states.to(widened(states.dtype))
    real = mask[..., None].to(wide.dtype)
    counts = running_sums(real, side, inclusive)
    return running_sums(wide * real, side, inclusive) / counts.clamp(min=1)


def content_agreement(contents: Tensor, means: Tensor, mask: Tensor, mean_over_width: bool = False) -> Tensor:
    """Content agreement loss L_BCA (Zheng 2019): || contents - means ||^2 averaged over real positions.

    contents, means [S, T, w] -> [S]. mean_over_width: the mean of the squares instead of their sum.
    """
    squares = (contents - means).square()
    distance = squares.mean(-1) if mean_over_width else squares.sum(-1)
    return (distance * mask).sum(1) / mask.sum(1).clamp(min=1)


class BagOfWords:
    """The bags of a prediction at every position of words [S, T] with mask [S, T]."""

    def __init__(self, prediction: Prediction, words: Tensor, mask: Tensor) -> None:
        self.bag = prediction.bag
        self.side: Side = "past" if prediction.target == "past_bag" else "future"
        self.inclusive = self.bag.span == "inclusive" or (self.side == "past" and self.bag.span == "analysis")
        self.words, self.mask = words, mask
        if self.bag.begins and self.side == "past" and not self.inclusive:
            # {BOS, y_1, ..., y_{t-1}} are the input words up to position t.
            self.words = torch.cat([torch.full_like(words[:, :1], BOS), words[:, :-1]], dim=1)
            self.inclusive = True
        self.counts = self._sums(mask.long())  # [S, T] tokens in each bag
        self.filled = self.counts > 0

    def _sums(self, values: Tensor) -> Tensor:
        return running_sums(values, self.side, self.inclusive)

    def partition(self, log_z: Tensor, vectors: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
        """The log-partition [P] of the words that are in the bag's softmax; log_z: that of all words."""
        if not self.bag.without_pad:
            return log_z
        return log_z + torch.log1p(-torch.exp((_pad_logit(vectors, matrix, bias) - log_z).clamp(max=-1e-6)))

    def terms(self, vectors: Tensor, matrix: Tensor, bias: Tensor | None, real: Positions) -> tuple[Tensor, Tensor]:
        """The parts [P] of a sentence's loss in nats, the sum of weights * partition - scores over its positions.

        real: the P positions of vectors [P, d].
        """
        wide = vectors.to(widened(vectors.dtype))
        offsets = matrix.new_zeros(len(matrix)) if bias is None else bias

        def logits(included: Tensor) -> Tensor:
            """The sum of logits of the words of each bag in `included` [S, T]: -> [P]."""
            weights = included.to(wide.dtype)
            embedded = torch.nn.functional.embedding(self.words, matrix).to(wide.dtype) * weights[..., None]
            return (wide * real.select(self._sums(embedded))).sum(-1) + real.select(
                self._sums(offsets[self.words] * weights)
            )

        counts = real.select(self.counts).to(wide.dtype)
        weights, scores = counts, logits(self.mask)
        eps = self.bag.label_smoothing
        if eps:
            types = self.mask & self._new_types()
            all_words = one_logit(vectors, matrix.sum(0)) + offsets.sum()
            others = all_words - _pad_logit(vectors, matrix, bias) - logits(types)
            number = len(matrix) - 1 - real.select(self._sums(types.long()))
            smooth = eps / (len(matrix) - 2) * counts
            weights, scores = (1 - eps) * weights + smooth * number, (1 - eps) * scores + smooth * others
        share = real.mean_weights(wide.dtype)
        if self.bag.mean:
            share = share / counts.clamp(min=1)  # a place of padding may have no word
        return share * weights, share * scores

    def _new_types(self) -> Tensor:
        """First occurrences of each word, read from the bag's fixed end: [S, T] bool."""
        words = self.words if self.side == "past" else self.words.flip(1)
        ordered, positions = words.sort(dim=1, stable=True)
        new = torch.ones_like(ordered, dtype=torch.bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        first = torch.empty_like(new).scatter_(1, positions, new)
        return first if self.side == "past" else first.flip(1)


def _pad_logit(vectors: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    logit = one_logit(vectors, matrix[PAD])
    return logit if bias is None else logit + bias[PAD]
