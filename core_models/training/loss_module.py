"""The training objective as a module."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from core_models.system import System
from core_models.text.batches import Batch
from core_models.training.reinforce import SampledTranslations, policy_loss


def total_loss(terms: Mapping[str, Tensor]) -> Tensor:
    """The sum of all loss terms, a scalar."""
    return torch.stack([term.sum() for term in terms.values()]).sum()


class Objective(nn.Module):
    """The loss terms of a batch, to be added up, in one forward call, as DistributedDataParallel needs it.

    With sampled translations of the batch the term `adequacy` is the policy loss times `adequacy_weight`.
    """

    def __init__(self, system: System, label_smoothing: float, adequacy_weight: float = 0.0) -> None:
        super().__init__()
        self.system, self.label_smoothing, self.adequacy_weight = system, label_smoothing, adequacy_weight

    def forward(self, batch: Batch, samples: SampledTranslations | None = None) -> dict[str, Tensor]:
        forced = self.system(self.system.encode(batch), batch.target_in, batch.target_mask)
        terms = self.system.losses(forced, batch, self.label_smoothing, summed=True)
        if samples is not None:
            terms["adequacy"] = self.adequacy_weight * policy_loss(self.system, batch, samples)
        return terms
