"""Loss terms of predictions over the vocabulary.

Every loss term is a sum per sentence [S], never below float32; the training loop weighs the terms and divides all by
one number (design: "One loss contract").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from core_models.interface.mechanism import Prediction
from core_models.layers.vocabulary_head import log_partition, one_logit, word_logits
from core_models.losses.bag_of_words import BagOfWords


def prediction_losses(
    predictions: Sequence[Prediction],
    tied: Tensor,
    tied_bias: Tensor | None,
    words: Tensor,
    mask: Tensor,
    label_smoothing: float = 0.0,
) -> dict[str, Tensor]:
    """Sums per sentence of the label-smoothed negative log-likelihood of every prediction, in nats; of bags, means.

    words, mask [S, T]; `tied` [V, d] is the output embedding. Predictions that share a matrix are scored in one fused
    pass over the vocabulary, real positions only. Smoothing gives each word eps / V of the mass, without a dense
    target: -(1 - eps) log P(y) - eps / V sum_v log P(v). A bag of words has its own smoothing and is averaged over
    positions.
    """
    groups: dict[int, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[id(prediction.head(tied, tied_bias)[0])].append(prediction)
    losses: dict[str, Tensor] = {}
    for group in groups.values():
        matrix, bias = group[0].head(tied, tied_bias)
        bags = [None if p.target == "word" else BagOfWords(p, words, mask) for p in group]
        masks = [mask if p.mask is None else mask & p.mask for p in group]
        masks = [real if bag is None else real & bag.filled for real, bag in zip(masks, bags, strict=True)]
        vectors = torch.cat([p.vectors[m] for p, m in zip(group, masks, strict=True)])  # [P, d]
        partition = log_partition(vectors, matrix, bias)
        counts = [int(m.sum()) for m in masks]
        pieces = zip(group, bags, masks, vectors.split(counts), partition.split(counts), strict=True)
        for prediction, bag, real, selected, log_z in pieces:
            if bag is not None:
                negative = bag.negative_log_probs(selected, log_z, matrix, bias, real)
                losses[prediction.name] = _per_sentence(negative, real) / real.sum(1).clamp(min=1)
                continue
            negative = log_z - word_logits(selected, matrix, words[real], bias)
            if label_smoothing:
                mean_logit = one_logit(selected, matrix.mean(0))
                if bias is not None:
                    mean_logit = mean_logit + bias.mean()
                negative = (1 - label_smoothing) * negative + label_smoothing * (log_z - mean_logit)
            losses[prediction.name] = _per_sentence(negative, real)
    return losses


def _per_sentence(values: Tensor, mask: Tensor) -> Tensor:
    """Sum values of the masked positions, in row order, into their sentences: [P] -> [S]."""
    rows = torch.nonzero(mask)[:, 0]
    return values.new_zeros(mask.shape[0]).index_add(0, rows, values)
