"""Loss terms of predictions over the vocabulary.

Every loss term is a sum per sentence [S], never below float32; the training loop weighs the terms and divides all by
one number (design: "One loss contract"). Training asks for the sums of all sentences, whose gradients the vocabulary
head computes together with them.
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


def prediction_losses(
    predictions: Sequence[Prediction],
    tied: Tensor,
    tied_bias: Tensor | None,
    words: Tensor,
    mask: Tensor,
    label_smoothing: float = 0.0,
    tokens: int | None = None,
    summed: bool = False,
) -> dict[str, Tensor]:
    """Sums per sentence of the label-smoothed negative log-likelihood of every prediction, in nats; of bags, means.

    words, mask [S, T]; `tied` [V, d] is the output embedding; tokens: the number of real positions, if it is known on
    the host, which else waits for a GPU to count them. Predictions that share a matrix are scored in one fused
    pass over the vocabulary, real positions only. Smoothing gives each word eps / V of the mass, without a dense
    target: -(1 - eps) log P(y) - eps / V sum_v log P(v). A bag of words has its own smoothing and is averaged over
    positions. summed: give the sum of all sentences, a scalar, where that is less work.
    """
    groups: dict[tuple[int, bool], list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        linear = prediction.target == "word" or not prediction.bag.without_pad  # in log Z
        groups[id(prediction.head(tied, tied_bias)[0]), summed and linear].append(prediction)
    every = Positions.of(mask, tokens)
    losses: dict[str, Tensor] = {}
    for (_, in_one_pass), group in groups.items():
        matrix, bias = group[0].head(tied, tied_bias)
        bags = [None if p.target == "word" else BagOfWords(p, words, mask) for p in group]
        places = [_places(p, bag, mask, every) for p, bag in zip(group, bags, strict=True)]
        selected = [real.select(p.vectors) for p, real in zip(group, places, strict=True)]
        vectors, counts = torch.cat(selected), [len(real) for real in places]  # [P, d]
        terms = [
            _word_terms(own, matrix, bias, real.select(words), label_smoothing)
            if bag is None
            else bag.terms(own, matrix, bias, real)
            for bag, real, own in zip(bags, places, selected, strict=True)
        ]
        if in_one_pass:
            sums = summed_log_partitions(vectors, matrix, bias, torch.cat([weights for weights, _ in terms]), counts)
            for prediction, log_z, (_, scores) in zip(group, sums.unbind(), terms, strict=True):
                losses[prediction.name] = log_z - scores.sum()
            continue
        partition = log_partition(vectors, matrix, bias).split(counts)
        pieces = zip(group, bags, places, selected, partition, terms, strict=True)
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


def _places(prediction: Prediction, bag: BagOfWords | None, mask: Tensor, every: Positions) -> Positions:
    """The positions at which a prediction has a loss: real, not left out, and with words in the bag if it is one."""
    if prediction.mask is None and (bag is None or bag.inclusive):
        return every
    real = mask if prediction.mask is None else mask & prediction.mask
    return Positions.of(real if bag is None else real & bag.filled)
