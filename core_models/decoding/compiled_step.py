"""A compiled step of a beam search: `compile: true` of a search."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core_models.interface.search_state import FixedShapes, Scores, Steppable


class CompiledStep:
    """A system or an ensemble whose step is compiled; what was compiled for a shape stays for the whole process.

    On a GPU a step is asked for as one CUDA graph. No GPU has run this yet.
    """

    def __init__(self, model: Steppable, device: torch.device) -> None:
        self._model = model
        mode = "reduce-overhead" if device.type == "cuda" else "default"
        self._step = torch.compile(model.step, mode=mode)

    def start(self, encoded: Any, fixed: FixedShapes | None = None) -> Any:
        return self._model.start(encoded, fixed)

    def step(self, words: Tensor, state: Any) -> tuple[Scores, Any]:
        return self._step(words, state)
