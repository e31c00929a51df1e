"""Decoding with integers of eight bits on a CPU: the linear maps and the vocabulary head of a system, nothing else.

A row of a weight matrix has a scale of its own; the vectors that come in are scaled together, each time. Knows
PyTorch's quantised products, no architecture and no search. Not for training.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from core_models.settings import ConfigError
from core_models.system import System

MOST = 127  # of a signed integer of eight bits, symmetric around zero
# Products of processors without VNNI add pairs in 16 bits: inputs of seven bits cannot overflow there.
SEVEN_BITS = True


class Int8Linear(nn.Module):
    """x @ W.T + b with W [out, in] in eight bits: [..., in] -> [..., out], float32 in and out."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features = len(weight)
        rows = weight.detach().float()
        scales = rows.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny * MOST) / MOST
        zeros = torch.zeros(len(rows), dtype=torch.long)
        with warnings.catch_warnings():  # PyTorch says that these products may go one day; `quantized` asks for them
            warnings.simplefilter("ignore", UserWarning)
            packed = torch.quantize_per_channel(rows, scales.double(), zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(packed, None if bias is None else bias.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, SEVEN_BITS)


def quantized(system: System) -> System:
    """A copy of a system that decodes in eight bits; the system itself stays as it is.

    Its scores are near the system's, not equal: what is forced or trained must keep the original. Raises ConfigError:
    see `check_quantizable`.
    """
    check_quantizable(system)
    copied = copy.deepcopy(system).eval()
    _replace(copied)
    copied.search_head = Int8Linear(*system.backbone.output_matrix)
    return copied


def check_quantizable(system: System) -> None:
    """Raises ConfigError where the device is no CPU, the weights are not float32, or PyTorch has no such products."""
    kind = next(system.parameters()).dtype
    if system.device.type != "cpu" or kind != torch.float32:
        raise ConfigError(
            f"precision int8 is for float32 weights on a CPU, these are {kind} on {system.device}; take full "
            "or bfloat16"
        )
    if torch.backends.quantized.engine == "none" or not hasattr(torch, "quantize_per_channel"):
        raise ConfigError("this PyTorch has no products of eight-bit integers; take precision full")


def _replace(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child.weight, child.bias))
        else:
            _replace(child)
