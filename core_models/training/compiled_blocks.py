"""Compiled blocks of the Transformer for training: `compile: true` of a training.

What mechanisms do at their hook points lies between the sublayers of the blocks and is not compiled; a sublayer with
mechanisms inside of it is not either. Blocks stay as they are outside of training.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from core_models.backbones.transformer import Block


def compile_blocks(system: nn.Module, backend: str = "inductor") -> int:
    """Compile the sublayers of all Transformer blocks in a system; returns how many blocks it has."""
    blocks = [module for module in system.modules() if isinstance(module, Block)]
    for block in blocks:
        for name in block.sublayers:
            setattr(block, name, _in_training(block, getattr(block, name), backend))
    return len(blocks)


def _in_training(block: Block, sublayer: Any, backend: str) -> Any:
    compiled = torch.compile(sublayer, backend=backend, dynamic=True)  # once for all shapes: each takes seconds

    def call(*arguments: Any) -> Any:
        of_mechanisms = any(map(callable, arguments))  # at the heads, say: a function of its own in each pass
        return (compiled if block.training and not of_mechanisms else sublayer)(*arguments)

    return call
