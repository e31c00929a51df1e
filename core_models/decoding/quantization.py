"""8-bit integer decoding on a CPU: quantizes the linear maps and the vocabulary head of a system.

Each row of a weight matrix has its own scale; the input vectors of a call share one dynamic scale. Uses PyTorch's
quantized products. Not for training.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from core_models.settings import ConfigError
from core_models.system import System

MOST = 127  # maximum of a symmetric signed 8-bit integer
# Processors without VNNI add pairs of products in 16 bits, which 7-bit inputs cannot overflow.
SEVEN_BITS = True


class Int8Linear(nn.Module):
    """Linear map x @ W.T + b with 8-bit W [out, in]: [..., in] -> [..., out], float32 in and out."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features = len(weight)
        rows = weight.detach().float()
        scales = rows.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny * MOST) / MOST
        zeros = torch.zeros(len(rows), dtype=torch.long)
        with warnings.catch_warnings():  # PyTorch warns that these products are deprecated; `quantized` checks for them
            warnings.simplefilter("ignore", UserWarning)
            packed = torch.quantize_per_channel(rows, scales.double(), zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(packed, None if bias is None else bias.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, SEVEN_BITS)


def quantized(system: System) -> System:
    """A copy of a system that decodes in eight bits; the system itself is unchanged.

    Its scores are close to the system's, not equal: use the original for forced decoding and training. Raises
    ConfigError as `check_quantizable` does.
    """
    check_quantizable(system)
    copied = copy.deepcopy(system).eval()
    _replace(copied)
    copied.search_head = Int8Linear(*system.backbone.output_matrix)
    return copied


def check_quantizable(system: System) -> None:
    """Raise ConfigError unless the device is a CPU, the weights are float32, and PyTorch has quantized products.

    Also for a head that caps its logits, which the quantized one does not.
    """
    if system.logit_cap is not None:
        raise ConfigError("a model with capped logits cannot decode in int8; take precision full or bfloat16")
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
