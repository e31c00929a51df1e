"""Slots for the keys and values of a search with a Transformer.

Every word of a sentence's beams fills its own slot for good: reordering beams only changes which slots a hypothesis
sees, its past. Keys and values are never copied between beams.

Slots and what is seen of them grow with the output. For a compiled step they do not: there are slots for all steps from
the start, all take part, and the device itself counts positions.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from core_models.interface.search_state import FixedShapes

FIRST_SLOTS = 128  # per sentence; doubled when they are full


def first_slots(
    memory: Tensor, layers: int, heads: int, width: int, fixed: FixedShapes | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Slots [S, layers, 2, H, slots, e] for each sentence of a memory [S, I, d], and the first state [S, 1, ...].

    The state has `seen` [S, K, used slots]; with fixed shapes [S, K, slots], and `position` [S, K].
    """
    sentences, shape = len(memory), (len(memory), layers, 2, heads)
    if fixed is None:
        slots = memory.new_empty(*shape, FIRST_SLOTS, width)
        return {"slots": slots}, {"seen": memory.new_zeros(sentences, 1, 0, dtype=torch.bool)}
    slots = memory.new_zeros(*shape, fixed.beams * fixed.steps, width)
    seen = memory.new_zeros(sentences, 1, slots.shape[4], dtype=torch.bool)
    return {"slots": slots}, {"seen": seen, "position": seen[..., 0].long()}


def next_slots(
    sentence: dict[str, Tensor], state: Mapping[str, Tensor], beams: int
) -> tuple[int | Tensor, dict[str, Tensor]]:
    """Which slots the words of this position fill, as `SelfAttention.step` takes them, and the state after it.

    Replaces the slots in `sentence` by twice as many when they are full, but for fixed shapes.
    """
    slots, seen = sentence["slots"], state["seen"]
    if "position" in state:
        places = state["position"][0, :1] * beams + torch.arange(beams, device=seen.device)
        itself = torch.arange(slots.shape[4], device=seen.device) == places[:, None]
        return places, {"seen": seen | itself, "position": state["position"] + 1}
    used = seen.shape[2]
    if used + beams > slots.shape[4]:
        room = max(slots.shape[4], beams)
        sentence["slots"] = torch.cat([slots, slots.new_empty(*slots.shape[:4], room, slots.shape[5])], dim=4)
    itself = torch.eye(beams, dtype=torch.bool, device=seen.device).expand(len(seen), -1, -1)
    return used, {"seen": torch.cat([seen, itself], dim=2)}
