"""Loss terms of predictions over the vocabulary.

Every loss term is a sum per sentence [S], never below float32; the training loop weighs the terms and divides all by
one number (design: "One loss contract"). At each position it is weights * log Z - scores, of which only log Z needs
the whole vocabulary. Where the sum over all sentences is enough, it is computed with its gradients in one pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from core_models.interface.mechanism import Prediction
from core_models.layers.vocabulary_head import log_partition, one_logit, summed_log_partitions, word_logits
from core_models.losses.bag_of_words import BagOfWords
from core_models.losses.positions import Positions
from core_models.losses.word_prior import prior_terms


def prediction_losses(
    predictions: Sequence[Prediction],
    tied: Tensor,
    tied_bias: Tensor | None,
    words: Tensor,
    mask: Tensor,
    label_smoothing: float = 0.0,
    tokens: int | None = None,
    fixed_shapes: bool = False,
    summed: bool = False,
) -> dict[str, Tensor]:
    """Sums per sentence of the label-smoothed negative log-likelihood of every prediction, in nats; of bags, means.

    words, mask [S, T]; `tied` [V, d] is the output embedding; tokens: the number of real positions, if it is known on
    the host, which else waits for a GPU to count them. fixed_shapes: padding is scored too and counts 0, so that no
    shape depends on the mask. summed: give the sum of all sentences, a scalar, where that is less work. Predictions
    that share a matrix are scored in one fused pass over the vocabulary, real positions only, and those of the same
    vectors share it. Smoothing gives each word eps / V of the mass, without a dense target: -(1 - eps) log P(y) -
    eps / V sum_v log P(v). A bag of words has its own smoothing and is averaged over positions; a prior has none.
    """
    groups: dict[tuple[int, bool], list[Prediction]] = defaultdict(list)
    heads = [id(prediction.head(tied, tied_bias)[0]) for prediction in predictions]
    with_prior = {head for head, prediction in zip(heads, predictions, strict=True) if prediction.prior is not None}
    for head, prediction in zip(heads, predictions, strict=True):
        linear = not prediction.bag.without_pad  # in log Z
        groups[head, summed and linear and head not in with_prior].append(prediction)
    every = Positions.every(mask) if fixed_shapes else Positions.of(mask, tokens)
    losses: dict[str, Tensor] = {}
    for (_, in_one_pass), group in groups.items():
        matrix, bias = group[0].head(tied, tied_bias)
        bags = [BagOfWords(p, words, mask) if p.target in ("past_bag", "future_bag") else None for p in group]
        places = [_places(p, bag, mask, every, fixed_shapes) for p, bag in zip(group, bags, strict=True)]
        selected = [real.select(p.vectors) for p, real in zip(group, places, strict=True)]  # [P, d] each
        terms = []
        for prediction, bag, real, own in zip(group, bags, places, selected, strict=True):
            if bag is not None:
                weights, scores = bag.terms(own, matrix, bias, real)
            elif prediction.prior is not None:
                weights, scores = prior_terms(prediction.prior, own, matrix, bias, real.select(words))
            else:
                weights, scores = _word_terms(own, matrix, bias, real.select(words), label_smoothing)
            terms.append((real.masked(weights), real.masked(scores)))
        if in_one_pass:
            counts = [len(real) for real in places]
            weights = torch.cat([weights for weights, _ in terms])
            sums = summed_log_partitions(torch.cat(selected), matrix, bias, weights, counts)
            for prediction, log_z, (_, scores) in zip(group, sums.unbind(), terms, strict=True):
                losses[prediction.name] = log_z - scores.sum()
            continue
        partitions = _partitions(group, places, selected, matrix, bias)
        pieces = zip(group, bags, places, selected, partitions, terms, strict=True)
        for prediction, bag, real, own, log_z, (weights, scores) in pieces:
            if bag is not None:
                log_z = bag.partition(log_z, own, matrix, bias)
            losses[prediction.name] = real.sums(weights * log_z - scores)
    return losses


def _word_terms(
    vectors: Tensor, matrix: Tensor, bias: Tensor | None, words: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The parts [P] of the losses of words, weights * log Z - scores."""
    scores = word_logits(vectors, matrix, words, bias)
    if smoothing:
        mean_logit = one_logit(vectors, matrix.mean(0))
        if bias is not None:
            mean_logit = mean_logit + bias.mean()
        scores = (1 - smoothing) * scores + smoothing * mean_logit
    return torch.ones_like(scores), scores


def _partitions(
    group: Sequence[Prediction],
    places: Sequence[Positions],
    selected: Sequence[Tensor],
    matrix: Tensor,
    bias: Tensor | None,
) -> list[Tensor]:
    """The log-partition [P] of the vectors of each prediction, by one pass; equal ones are in it once."""
    keys = [(id(prediction.vectors), id(real)) for prediction, real in zip(group, places, strict=True)]
    first = {key: keys.index(key) for key in keys}
    different = [selected[number] for number in first.values()]
    pieces = log_partition(torch.cat(different), matrix, bias).split([len(each) for each in different])
    by_key = dict(zip(first, pieces, strict=True))
    return [by_key[key] for key in keys]


def _places(
    prediction: Prediction, bag: BagOfWords | None, mask: Tensor, every: Positions, fixed_shapes: bool
) -> Positions:
    """The positions at which a prediction has a loss: real, not left out, and with words in the bag if it is one."""
    if prediction.mask is None and (bag is None or bag.inclusive):
        return every
    real = mask if prediction.mask is None else mask & prediction.mask
    real = real if bag is None else real & bag.filled
    return Positions.every(real) if fixed_shapes else Positions.of(real)
