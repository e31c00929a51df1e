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
from core_models.losses.word_prior import divergences


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
    positions; a prior is not smoothed. Predictions of the same vectors at the same positions share their pass.
    """
    groups: dict[int, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[id(prediction.head(tied, tied_bias)[0])].append(prediction)
    every = Positions.every(mask) if fixed_shapes else Positions.of(mask, tokens)
    losses: dict[str, Tensor] = {}
    for group in groups.values():
        matrix, bias = group[0].head(tied, tied_bias)
        bags = [BagOfWords(p, words, mask) if p.target in ("past_bag", "future_bag") else None for p in group]
        places = [_places(p, bag, mask, every, fixed_shapes) for p, bag in zip(group, bags, strict=True)]
        passes = _partitions(group, places, matrix, bias)
        for prediction, bag, real, (selected, log_z) in zip(group, bags, places, passes, strict=True):
            if bag is not None:
                negative = bag.negative_log_probs(selected, log_z, matrix, bias, real)
                losses[prediction.name] = real.sums(negative) / real.counts.clamp(min=1)
                continue
            if prediction.prior is not None:
                divergence = divergences(prediction.prior, selected, log_z, matrix, bias, real.select(words))
                losses[prediction.name] = real.sums(divergence)
                continue
            negative = log_z - word_logits(selected, matrix, real.select(words), bias)
            if label_smoothing:
                mean_logit = one_logit(selected, matrix.mean(0))
                if bias is not None:
                    mean_logit = mean_logit + bias.mean()
                negative = (1 - label_smoothing) * negative + label_smoothing * (log_z - mean_logit)
            losses[prediction.name] = real.sums(negative)
    return losses


def _partitions(
    group: Sequence[Prediction], places: Sequence[Positions], matrix: Tensor, bias: Tensor | None
) -> list[tuple[Tensor, Tensor]]:
    """The vectors [P, d] of each prediction and their log-partition [P], by one pass; equal ones are in it once."""
    keys = [(id(prediction.vectors), id(real)) for prediction, real in zip(group, places, strict=True)]
    first = {key: keys.index(key) for key in keys}
    selected = [places[number].select(group[number].vectors) for number in first.values()]
    vectors, counts = torch.cat(selected), [len(each) for each in selected]
    pieces = zip(vectors.split(counts), log_partition(vectors, matrix, bias).split(counts), strict=True)
    passes = dict(zip(first, pieces, strict=True))
    return [passes[key] for key in keys]


def _places(
    prediction: Prediction, bag: BagOfWords | None, mask: Tensor, every: Positions, fixed_shapes: bool
) -> Positions:
    """The positions at which a prediction has a loss: real, not left out, and with words in the bag if it is one."""
    if prediction.mask is None and (bag is None or bag.inclusive):
        return every
    real = mask if prediction.mask is None else mask & prediction.mask
    real = real if bag is None else real & bag.filled
    return Positions.every(real) if fixed_shapes else Positions.of(real)
