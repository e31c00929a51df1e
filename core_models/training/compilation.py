"""Compiled parts of a system for training: `compile: true` or `compile: routing` of a training.

Modules name their `tensor_functions`: methods that work on tensors alone. The routing of layers and heads is such a
function, and so are the sublayers of the Transformer's blocks; what mechanisms do between sublayers is not compiled,
and a sublayer with mechanisms inside of it is not either. Outside of training all stay as they are.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from core_models.backbones.transformer import Block


def compile_parts(system: nn.Module, which: Literal[True, "routing"], backend: str = "inductor") -> int:
    """Compile the tensor functions of all modules in a system, or those of routing alone; returns how many."""
    parts = [
        (module, name)
        for module in system.modules()
        if which is True or not isinstance(module, Block)
        for name in getattr(module, "tensor_functions", ())
    ]
    for module, name in parts:
        setattr(module, name, _in_training(module, getattr(module, name), backend))
    return len(parts)


def _in_training(module: nn.Module, function: Any, backend: str) -> Any:
    compiled = torch.compile(function, backend=backend, dynamic=True)  # once for all shapes: each takes seconds

    def call(*arguments: Any) -> Any:
        of_mechanisms = any(map(callable, arguments))  # at the heads, say: a function of its own in each pass
        return (compiled if module.training and not of_mechanisms else function)(*arguments)

    return call
