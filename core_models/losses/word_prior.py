"""The divergence of a prior over words from a prediction, without a distribution over the vocabulary (Li 2020).

    KL(q || P) = -H(q) + log Z - u . sum_v q(v | y) E[v],   P(v) = exp(u . E[v]) / Z

The last term is the logit of the prior's mean embedding: of the rows near y, and of the sum of all words' rows, which
is one for all positions. log Z is the one of the cross-entropy.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core_models.interface.mechanism import WordPrior
from core_models.layers.precision import widened
from core_models.layers.vocabulary_head import one_logit


def prior_terms(
    prior: WordPrior, vectors: Tensor, matrix: Tensor, bias: Tensor | None, words: Tensor
) -> tuple[Tensor, Tensor]:
    """The parts [P] of KL(q(. | y) || P) = weights * log Z - scores, in nats; both are 0 where a word has no prior.

    vectors [P, d], matrix [V, d], bias [V], correct words [P].
    """
    wide = vectors.to(widened(vectors.dtype))
    near = prior.nearest(words)  # [P, k]
    known, near = near[:, 0] >= 0, near.clamp(min=0)
    shares = prior.shares.to(matrix.dtype).expand(near.shape)
    starts = torch.arange(0, near.numel(), near.shape[1], device=near.device)
    mean = torch.nn.functional.embedding_bag(  # [P, d]
        near.flatten(), matrix, starts, mode="sum", per_sample_weights=shares.flatten()
    )
    logit = (wide * mean.to(wide.dtype)).sum(-1)
    if bias is not None:
        logit = logit + (shares * bias[near]).sum(-1)
    if prior.floor:
        logit = logit + prior.floor * one_logit(vectors, matrix[prior.first :].sum(0))
        if bias is not None:
            logit = logit + prior.floor * bias[prior.first :].sum()
    return known.to(wide.dtype), torch.where(known, logit + prior.entropy, torch.zeros_like(logit))
