"""Recurrent cells and additive attention, as PyTorch's GRUCell writes them: the update gate keeps the old state, the
reset gate works after the recurrent product. Knows single positions, not sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GatedUnit(nn.Module):
    """GRU (Cho 2014): h = u * h_prev + (1 - u) * tanh(x W + r * (h_prev U)). Works on [..., d]."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 3 * width)
        self.from_state = nn.Linear(width, 3 * width, bias=False)

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """`projected` is from_input(x) [..., 3 d], so that callers can make it for all positions at once."""
        input_reset, input_update, input_candidate = projected.chunk(3, dim=-1)
        state_reset, state_update, state_candidate = self.from_state(state).chunk(3, dim=-1)
        reset = torch.sigmoid(input_reset + state_reset)
        update = torch.sigmoid(input_update + state_update)
        candidate = torch.tanh(input_candidate + reset * state_candidate)
        return update * state + (1 - update) * candidate


class AdditiveAttention(nn.Module):
    """Attention by a small network (Bahdanau 2015): e_i = v . tanh(W_q s + W_k h_i + b)."""

    def __init__(self, state: int, memory: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(state, width, bias=False)
        self.keys = nn.Linear(memory, width)
        self.energy = nn.Linear(width, 1, bias=False)

    def weights(self, summed: Tensor, mask: Tensor) -> Tensor:
        """Pre-activation energies [S, N, I, a] and mask [S, I] -> a distribution over the source [S, N, I]."""
        energy = self.energy(torch.tanh(summed))[..., 0]
        energy = energy.to(torch.promote_types(energy.dtype, torch.float32))
        return torch.softmax(energy.masked_fill(~mask[:, None], torch.finfo(energy.dtype).min), dim=-1) * mask[:, None]
