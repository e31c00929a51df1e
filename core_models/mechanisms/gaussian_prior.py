"""Data-dependent Gaussian prior objective, D2GPo (Li 2020): words like the correct one are better than others.

All words are put in an order by the cosine of their embedding and the correct word's, y itself first. The density of a
Gaussian at a word's rank r in that order makes a distribution q(. | y), and KL(q || P) is added to the cross-entropy:

    f(r) = exp(-r^2 / (2 sigma^2)) / (sigma sqrt(2 pi)),   q = softmax(f / T),   L = L_MLE + lambda KL(q || P)

It only adds a loss; decoding does not use it. Ranks whose shares together are below the precision of float64 are left
out (`Shares`), so that a word needs only its k nearest ones, k about 7 sigma (`form: density` 9); no tensor has size
[S, T, V].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    Mechanism,
    MechanismState,
    Options,
    Prediction,
    View,
    WordPrior,
    reject_unused_options,
)
from core_models.layers.precision import wide
from core_models.layers.vocabulary_head import CACHED_LOGITS, KEPT_LOGITS
from core_models.text.vocabulary import EOS

FIRST_WORD = EOS + 1  # the pieces before it are no words: PAD, UNK, BOS, EOS
NEGLIGIBLE = torch.finfo(torch.float64).eps


class GaussianPriorOptions(Options):
    weight: float = Field(0.1, ge=0, description="lambda of the divergence")
    deviation: float = Field(1.0, gt=0, le=1e6, description="sigma of the Gaussian, in ranks")
    form: Literal["softmax", "density"] = Field(
        "softmax", description="what q is: the softmax of the densities, as released, or the densities, of sum 1"
    )
    temperature: float = Field(2.0, gt=0, description="T of the softmax of the densities")
    order: Literal["present", "first"] = Field(
        "present",
        description="embeddings that order the words: those of this step, or for good those that the training begins "
        "with (init_from)",
    )
    objective: Literal["paper", "released"] = Field(
        "paper",
        description="cross-entropy + lambda KL; released: (1 - lambda) cross-entropy + lambda T^2 KL",
    )

    @model_validator(mode="after")
    def _check_combinations(self) -> GaussianPriorOptions:
        if self.objective == "paper":
            reject_unused_options(self, {"temperature": ("form", "softmax")})
        if self.objective == "released" and self.weight >= 1:
            raise ValueError(f"weight: {self.weight} leaves nothing of the cross-entropy; released needs one below 1")
        return self


@dataclass(frozen=True)
class Shares:
    """q by rank: `floor` for every word and `near[r]` more for rank r < k; what is left out is below NEGLIGIBLE.

    KL(q || P) then is off by at most NEGLIGIBLE times the largest difference of two logits.
    """

    near: Tensor  # [k] float64
    floor: float
    entropy: float  # of q, in nats

    @classmethod
    def of(cls, options: GaussianPriorOptions, words: int) -> Shares:
        """The shares of as many words as the vocabulary has."""
        rank = torch.arange(words, dtype=torch.float64)
        bell = torch.exp(-((rank / options.deviation) ** 2) / 2)
        floor = torch.zeros((), dtype=torch.float64)
        near = bell / bell.sum()
        if options.form == "softmax":
            scaled = bell / (options.deviation * math.sqrt(2 * math.pi) * options.temperature)  # f / T
            floor = 1 / torch.exp(scaled).sum()
            near = torch.expm1(scaled) * floor
        entropy = -torch.special.xlogy(near + floor, near + floor).sum()
        left_out = near.flip(0).cumsum(0).flip(0) <= NEGLIGIBLE  # from rank r on
        kept = max(1, words - int(left_out.sum()))
        return cls(near[:kept].clone(), float(floor), float(entropy))


@wide
def nearest_words(table: Tensor, words: Tensor, count: int) -> Tensor:
    """The `count` words with the largest cosine to each word, the word itself first; -1 for what is no word.

    table [V, d] of embeddings, words [P] -> [P, count] int64. The similarities of a few words are in memory at once.
    """
    directions = nn.functional.normalize(table, dim=-1)
    others = directions[FIRST_WORD:]
    near = words.new_full((len(words), count), -1)
    rows = max(1, (CACHED_LOGITS if table.device.type == "cpu" else KEPT_LOGITS) // len(others))
    for start in range(0, len(words), rows):
        part = words[start : start + rows]
        itself = (part - FIRST_WORD).clamp(min=0)
        similarities = (directions[part] @ others.t()).scatter_(1, itself[:, None], 2.0)  # a cosine is at most 1
        found = similarities.topk(count).indices + FIRST_WORD
        near[start : start + rows] = torch.where(part[:, None] < FIRST_WORD, -1, found)
    return near


class GaussianPrior(Mechanism):
    """The divergence of the prior from the system's own distribution, at each position whose word is one."""

    Options = GaussianPriorOptions
    options: GaussianPriorOptions
    shares: Tensor

    def __init__(self, spec: BackboneSpec, options: GaussianPriorOptions) -> None:
        super().__init__(spec, options)
        self.embed, self.vocabulary_size = spec.target_embedding, spec.vocabulary_size
        shares = Shares.of(options, spec.vocabulary_size - FIRST_WORD)
        self.floor, self.entropy = shares.floor, shares.entropy
        self.register_buffer("shares", shares.near, persistent=False)
        released = options.objective == "released"
        self.main_weight = 1 - options.weight if released else 1.0
        self.weight = options.weight * (options.temperature**2 if released else 1.0)
        self.nearest: nn.Parameter | None = None
        if options.order == "first":  # numbers of words, in a type that weights are stored in; -1: not known yet
            unknown = torch.full((spec.vocabulary_size, len(shares.near)), -1.0)
            self.nearest = nn.Parameter(unknown, requires_grad=False)

    @torch.no_grad()
    def begin_training(self) -> None:
        """Under `order: first`, order the words by the embeddings as they are, unless that was done before."""
        if self.nearest is not None and bool((self.nearest < 0).all()):
            words = torch.arange(self.vocabulary_size, device=self.nearest.device)
            self.nearest.copy_(nearest_words(self.embed(words), words, self.nearest.shape[1]))

    @torch.no_grad()
    def near(self, words: Tensor) -> Tensor:
        """The words near each word [P] -> [P, k]; -1 for what is no word, or has no order yet."""
        if self.nearest is not None:
            return self.nearest[words].round().long()
        table = self.embed(torch.arange(self.vocabulary_size, device=words.device))
        if words.device.type != "cpu":  # there the number of different words would have to be waited for
            return nearest_words(table, words, len(self.shares))
        different, places = words.unique(return_inverse=True)
        return nearest_words(table, different, len(self.shares))[places]

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        """The system's own prediction, whose target is the prior of the correct word."""
        prior = WordPrior(self.near, self.shares, self.floor, self.entropy, FIRST_WORD)
        return [Prediction("gaussian_prior", view.output, weight=self.weight, target="prior", prior=prior)]
