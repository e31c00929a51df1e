"""States of context sentences, computed by a system's backbone for each sentence separately.

No gradient passes through them, as in the papers whose second stage reads stored states of the first (Miculicich 2018,
Maruf 2019).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from core_models.interface.mechanism import ContextStates, Mechanism
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.layers.attention import never_empty
from core_models.text.batches import Context
from core_models.text.vocabulary import BOS


@torch.no_grad()
def context_states(
    backbone: nn.Module, context: Context, outputs: bool, stand_ins: Mapping[str, Mechanism] | None = None
) -> ContextStates:
    """Memory [S, K, C, d] of context sentences and, with `outputs`, the states [S, K, O, d] of their translations.

    State t of a translation has read its words before t. States of absent sentences are masked. stand_ins: mechanisms
    that replace a part of the backbone.
    """
    alone = ActiveMechanisms(stand_ins or {}, {}, {}, forced=True)
    shape, mask = context.words.shape[:2], never_empty(context.mask.flatten(0, 1))
    memory = backbone.encode(context.words.flatten(0, 1), mask, alone)
    states = memory.unflatten(0, shape)
    if not outputs:
        return ContextStates(states, context.mask)
    if context.outputs is None or context.outputs_mask is None:
        raise ValueError("this system reads the translations of the sentences before, and the batch has none")
    words = context.outputs.flatten(0, 1)
    entering = torch.cat([torch.full_like(words[:, :1], BOS), words[:, :-1]], dim=1)
    prepared = backbone.prepare(memory, mask)
    _, view = backbone.force(entering, context.outputs_mask.flatten(0, 1), prepared, mask, alone)
    return ContextStates(states, context.mask, view.state.unflatten(0, shape), context.outputs_mask)
