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
from core_models.losses.positions import Positions


def prediction_losses(
    predictions: Sequence[Prediction],
    tied: Tensor,
    tied_bias: Tensor | None,
    words: Tensor,
    mask: Tensor,
    label_smoothing: float = 0.0,
    tokens: int | None = None,
    fixed_shapes: bool = False,
) -> dict[str, Tensor]:
    """Sums per sentence of the label-smoothed negative log-likelihood of every prediction, in nats; of bags, means.

    words, mask [S, T]; `tied` [V, d] is the output embedding; tokens: the number of real positions, if it is known on
    the host, which else waits for a GPU to count them. fixed_shapes: padding is scored too and counts 0, so that no
    shape depends on the mask. Predictions that share a matrix are scored in one fused pass over the vocabulary, real
    positions only. Smoothing gives each word eps / V of the mass, without a dense
    target: -(1 - eps) log P(y) - eps / V sum_v log P(v). A bag of words has its own smoothing and is averaged over
    positions.
    """
    groups: dict[int, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[id(prediction.head(tied, tied_bias)[0])].append(prediction)
    every = Positions.every(mask) if fixed_shapes else Positions.of(mask, tokens)
    losses: dict[str, Tensor] = {}
    for group in groups.values():
        matrix, bias = group[0].head(tied, tied_bias)
        bags = [None if p.target == "word" else BagOfWords(p, words, mask) for p in group]
        places = [_places(p, bag, mask, every, fixed_shapes) for p, bag in zip(group, bags, strict=True)]
        vectors = torch.cat([real.select(p.vectors) for p, real in zip(group, places, strict=True)])  # [P, d]
        partition = log_partition(vectors, matrix, bias)
        counts = [len(real) for real in places]
        pieces = zip(group, bags, places, vectors.split(counts), partition.split(counts), strict=True)
        for prediction, bag, real, selected, log_z in pieces:
            if bag is not None:
                negative = bag.negative_log_probs(selected, log_z, matrix, bias, real)
                losses[prediction.name] = real.sums(negative) / real.counts.clamp(min=1)
                continue
            negative = log_z - word_logits(selected, matrix, real.select(words), bias)
            if label_smoothing:
                mean_logit = one_logit(selected, matrix.mean(0))
                if bias is not None:
                    mean_logit = mean_logit + bias.mean()
                negative = (1 - label_smoothing) * negative + label_smoothing * (log_z - mean_logit)
            losses[prediction.name] = real.sums(negative)
    return losses


def _places(
    prediction: Prediction, bag: BagOfWords | None, mask: Tensor, every: Positions, fixed_shapes: bool
) -> Positions:
    """The positions at which a prediction has a loss: real, not left out, and with words in the bag if it is one."""
    if prediction.mask is None and (bag is None or bag.inclusive):
        return every
    real = mask if prediction.mask is None else mask & prediction.mask
    real = real if bag is None else real & bag.filled
    return Positions.every(real) if fixed_shapes else Positions.of(real)
