"""The losses of subtraction and addition (Zheng 2018, section 4.4): a change of contents predicts its word.

Released: D = tanh((s W_l - s' W_r) W + b), then a softmax over the vocabulary with a separate matrix, initialized as a
copy of the output matrix. Published: l(u, v) = u^T W v + b of the plain difference u and the word's embedding v (D4).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec


class ChangeHead(nn.Module):
    """Maps two states [..., d] to vectors for the vocabulary head [..., output]; if untied, with matrix and bias."""

    def __init__(self, spec: BackboneSpec, width: int, delta: Literal["mapped", "plain"], untied: bool) -> None:
        super().__init__()
        mapped = delta == "mapped"
        self.minuend = nn.Linear(width, width, bias=False) if mapped else None
        self.subtrahend = nn.Linear(width, width, bias=False) if mapped else None
        self.map = nn.Linear(width, spec.widths["output"], bias=mapped)
        for linear in filter(None, (self.minuend, self.subtrahend, self.map)):
            nn.init.xavier_uniform_(linear.weight)
        if mapped:
            nn.init.zeros_(self.map.bias)
        assert spec.output_matrix is not None  # every backbone lends it
        self.output_matrix = spec.output_matrix
        self.matrix: nn.Parameter | None = None
        self.bias: nn.Parameter | None = None
        if untied:
            matrix, bias = self.output_matrix()
            self.matrix = nn.Parameter(matrix.detach().clone())
            self.bias = nn.Parameter(matrix.new_zeros(len(matrix)) if bias is None else bias.detach().clone())

    def rows(self, words: Tensor) -> Tensor:
        """The rows of the matrix that score these words: [...] -> [..., output]."""
        return (self.output_matrix()[0] if self.matrix is None else self.matrix)[words]

    def copy(self) -> None:
        """Initialize an untied matrix with the current output matrix."""
        if self.matrix is not None and self.bias is not None:
            matrix, bias = self.output_matrix()
            with torch.no_grad():
                self.matrix.copy_(matrix)
                self.bias.zero_() if bias is None else self.bias.copy_(bias)

    def forward(self, minuend: Tensor, subtrahend: Tensor) -> Tensor:
        if self.minuend is None or self.subtrahend is None:
            return self.map(minuend - subtrahend)
        return torch.tanh(self.map(self.minuend(minuend) - self.subtrahend(subtrahend)))
