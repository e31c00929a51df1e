"""The regularization layer of Yang 2019 (section 3.4): correlated capsules of source and target.

Two plain capsule networks, over the source and the target embeddings, are trained to have correlated outputs (Eq. 11).
The layer only adds a loss; decoding does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, Mechanism, MechanismState, Options, View
from core_models.routing.query_guided import Correlation, correlations, shared_dynamic_routing

if TYPE_CHECKING:
    from core_models.text.batches import Batch


class CapsuleRegularizationOptions(Options):
    capsules: int = Field(4, gt=0, description="m, as many as the query-guided network has")
    iterations: int = Field(4, gt=0, description="r")
    correlation: Correlation = Field("pearson", description="or Eq. 7 as published (E2)")
    reg_weight: float = Field(1.0, ge=0, description="of the correlation; the paper has none, so one (E9)")
    reg_norm: Literal["token", "sentence"] = Field(
        "token", description="Eq. 11 counts a sentence's correlation once for each of its target words, or once (E9)"
    )
    reg_pairs: Literal["capsules", "flat"] = Field(
        "capsules", description="mean over pairs of capsules, or one correlation of all m d numbers (E10)"
    )
    reg_inputs: Literal["embeddings", "stream"] = Field(
        "embeddings",
        description="of source and predicted words; or what the first layers get, positions too (E11)",
    )


class CapsuleRegularization(Mechanism):
    """A loss term that falls as the correlation rises; only `reg_inputs: stream` needs a hook point."""

    Options = CapsuleRegularizationOptions
    options: CapsuleRegularizationOptions

    def __init__(self, spec: BackboneSpec, options: CapsuleRegularizationOptions) -> None:
        super().__init__(spec, options)
        self.embed = {"source": spec.source_embedding, "target": spec.target_embedding}
        streams = options.reg_inputs == "stream"
        self.hook_points = (HookPoint.ENCODER_LAYER_INPUT,) if streams else ()
        width = spec.widths["stream" if streams else "embedding"]
        self.transform = nn.ParameterDict(
            {side: nn.Parameter(torch.empty(options.capsules, width, width)) for side in self.embed}
        )
        for parameter in self.transform.values():
            for matrix in parameter.data:
                nn.init.xavier_uniform_(matrix)

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if view.layer == 0:
            own_state.notes["source"] = x
        return x

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """The input of the encoder, used by the loss only."""
        return {"source": own_state.notes["source"]} if self.hook_points else {}

    def _inputs(self, view: View, own_state: MechanismState, batch: Batch) -> tuple[Tensor, Tensor]:
        """Vectors of source [S, I, d] and target words [S, T, d]: the predicted words, or the inputs (E11)."""
        if self.hook_points:
            return own_state.sentence["source"], view.embedded
        return self.embed["source"](batch.source), self.embed["target"](batch.target)

    def correlation(self, source: Tensor, target: Tensor, batch: Batch) -> Tensor:
        """Correlation of the two networks' outputs for vectors [S, I, d] and [S, T, d]: [S], from -1 to 1."""
        iterations = self.options.iterations
        sources = shared_dynamic_routing(source, self.transform["source"], batch.source_mask, iterations).capsules
        targets = shared_dynamic_routing(target, self.transform["target"], batch.target_mask, iterations).capsules
        if self.options.reg_pairs == "flat":
            sources, targets = sources.flatten(1)[:, None], targets.flatten(1)[:, None]
        pairs = correlations(sources[:, :, None], targets[:, :, None], self.options.correlation)  # [S, m, 1, 1]
        return pairs[..., 0, 0].mean(1)

    def losses(self, view: View, own_state: MechanismState, batch: Batch) -> dict[str, Tensor]:
        """Minus the correlation, times the number of target words under `reg_norm: token`."""
        correlation = self.correlation(*self._inputs(view, own_state, batch), batch)
        n_words = batch.target_mask.sum(1) if self.options.reg_norm == "token" else batch.target_mask.any(1)
        return {"regularisation": -self.options.reg_weight * n_words.to(correlation.dtype) * correlation}
