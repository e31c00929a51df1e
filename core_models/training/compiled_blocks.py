"""Compiled blocks of the Transformer for training: `compile: true` of a training.

What mechanisms do at their hook points lies between the sublayers of the blocks and is not compiled. Outside of
training, where shapes vary, blocks stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from core_models.backbones.transformer import Block

MOST_SHAPES = 128  # a sublayer is compiled again for each shape of a bucket


def compile_blocks(system: nn.Module, backend: str = "inductor") -> int:
    """Compile the sublayers of all Transformer blocks in a system; returns how many blocks it has."""
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST_SHAPES)
    blocks = [module for module in system.modules() if isinstance(module, Block)]
    for block in blocks:
        for name in block.sublayers:
            setattr(block, name, _in_training(block, getattr(block, name), backend))
    return len(blocks)


def _in_training(block: Block, sublayer: Any, backend: str) -> Any:
    compiled = torch.compile(sublayer, backend=backend, dynamic=False)
    return lambda *arguments: (compiled if block.training else sublayer)(*arguments)
