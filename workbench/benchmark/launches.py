"""Counts the operators of a training step and of a beam-search step; on a GPU each launches at least one kernel.

They are counted on a CPU. There large batches are computed in parts that fit into the cache, unlike on a GPU, so the
batch is small. Views and allocations are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.system import System
from core_models.system_builder import build
from core_models.training.loss_module import Objective, total_loss
from workbench.benchmark.speed import Endless, in_context
from workbench.benchmark.workload import Shape, decoding_batches, training_pairs

CAST = "_to_copy"
WITHOUT_KERNEL = (
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "lift_fresh",
)
BEAM_STEPS = 8
FEW_SENTENCES = Shape(vocabulary=500, batch_tokens=40, sentences=4, batch_sentences=4, length=6)


class CountOperators(TorchDispatchMode):
    """Counts the operators with a kernel that are called inside the context, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if not func.is_view and name not in WITHOUT_KERNEL:
            self.calls[name] += 1
        return func(*args, **(kwargs or {}))


def count_launches(name: str, precision: str = "float32", shape: Shape = FEW_SENTENCES) -> dict[str, int]:
    """The operators of one training step, forward, backward and update, and of one step of beam search.

    casts: those of forward and backward that change the type of a tensor.
    """
    torch.manual_seed(1)
    system = build(name, shape.vocabulary)
    lower = precision == "bfloat16"
    forward, backward, update = _training(system, shape, lower)
    return {
        "forward": forward.total(),
        "backward": backward.total(),
        "casts": forward[CAST] + backward[CAST],
        "update": update.total(),
        "beam_step": _beam_step(system, shape, lower),
    }


def _training(system: System, shape: Shape, lower: bool) -> list[Counter[str]]:
    """The operators of the forward pass with losses, of the backward pass, and of clipping and the fused update."""
    objective = Objective(system.train(), shape.label_smoothing)
    optimizer = torch.optim.AdamW(system.parameters(), lr=3e-4, fused=True)
    counted: list[Counter[str]] = []
    for _, pair in zip(range(2), training_pairs(shape), strict=False):  # the first step also makes what later ones keep
        batch = in_context(system, *pair)
        with CountOperators() as forward, torch.autocast("cpu", torch.bfloat16, enabled=lower):
            loss = total_loss(objective(batch)) / batch.target_tokens
        with CountOperators() as backward:
            loss.backward()
        with CountOperators() as update:
            torch.nn.utils.clip_grad_norm_(system.parameters(), 1.0)
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        counted = [forward.calls, backward.calls, update.calls]
    return counted


def _beam_step(system: System, shape: Shape, lower: bool) -> int:
    """The operators of one step: those that a longer output takes, by step."""
    endless = Endless(system.eval())
    sources = decoding_batches(shape)[0]

    def search(words: int) -> int:
        config = SearchConfig(beam=shape.beam, length_penalty=1.0, penalty="power", max_length=words)
        limits = torch.full((len(sources),), words)
        batch = in_context(system, sources)
        with CountOperators() as counted, torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=lower):
            beam_search(endless, system.encode(batch), limits, config)
        return counted.calls.total()

    search(2 * BEAM_STEPS)  # makes what later searches keep
    return round((search(2 * BEAM_STEPS) - search(BEAM_STEPS)) / BEAM_STEPS)
