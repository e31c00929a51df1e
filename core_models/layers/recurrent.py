"""Recurrent cells and additive attention for single positions.

As in PyTorch's cells, a GRU's update gate keeps the old state, and its reset gate acts after the recurrent product.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from core_models.layers.masked_softmax import masked_softmax
from core_models.layers.tanh import tanh

RECURRENCE = "recurrence"  # name of the sequential steps in a profile


class RecurrentCell(nn.Module):
    """Base of the cells. A state is a hidden vector [..., d], with what a cell remembers beside it."""

    gates: int

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.from_input = nn.Linear(inputs, self.gates * width)
        self.from_state = nn.Linear(width, self.gates * width, bias=False)

    def initialize(self) -> None:
        """Orthogonal recurrent matrices, gate by gate."""
        for part in self.from_state.weight.chunk(self.gates):
            nn.init.orthogonal_(part)

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """The new state; `projected` is from_input(x), which callers compute for all positions at once."""
        return self.combine(projected, self.from_state(self.hidden(state)), state)

    def combine(self, projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        """The new state from from_input(x) and from_state(hidden) [..., gates d] and the previous state."""
        raise NotImplementedError

    def first(self, hidden: Tensor) -> Tensor:
        """The initial state with this hidden vector."""
        return hidden

    def hidden(self, state: Tensor) -> Tensor:
        """The hidden vector of a state: [..., d]."""
        return state

    def with_hidden(self, state: Tensor, hidden: Tensor) -> Tensor:
        """The state with another hidden vector."""
        return hidden


class GRUCell(RecurrentCell):
    """GRU (Cho 2014): h = u * h_prev + (1 - u) * tanh(x W + r * (h_prev U)). Its state is its hidden vector."""

    gates = 3

    def combine(self, projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        """The new state from from_input(x) and from_state(hidden) [..., 3 d] and the previous state."""
        update, candidate = self.gated(projected, recurrent)
        return candidate + update * (state - candidate)

    def gated(self, projected: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor]:
        """Update gate (share of the state that is kept) and candidate: [..., d] each."""
        input_gates, input_candidate = projected.split((2 * self.width, self.width), dim=-1)
        state_gates, state_candidate = recurrent.split((2 * self.width, self.width), dim=-1)
        reset, update = torch.sigmoid(input_gates + state_gates).chunk(2, dim=-1)
        return update, torch.tanh(input_candidate + reset * state_candidate)


class LSTMCell(RecurrentCell):
    """LSTM (Hochreiter 1997, with an initially open forget gate). A state is [hidden, memory cell], [..., 2 d]."""

    gates = 4

    def initialize(self) -> None:
        super().initialize()
        nn.init.ones_(self.from_input.bias.data[self.width : 2 * self.width])

    def combine(self, projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        """The new state from from_input(x) and from_state(hidden) [..., 4 d]: input, forget, candidate, output."""
        enter, forget, candidate, leave = (projected + recurrent).chunk(4, dim=-1)
        cell = torch.sigmoid(forget) * state[..., self.width :] + torch.sigmoid(enter) * torch.tanh(candidate)
        return torch.cat([torch.sigmoid(leave) * torch.tanh(cell), cell], dim=-1)

    def first(self, hidden: Tensor) -> Tensor:
        """The initial state with this hidden vector and a zero memory cell."""
        return torch.cat([hidden, torch.zeros_like(hidden)], dim=-1)

    def hidden(self, state: Tensor) -> Tensor:
        return state[..., : self.width]

    def with_hidden(self, state: Tensor, hidden: Tensor) -> Tensor:
        return torch.cat([hidden, state[..., self.width :]], dim=-1)


CELLS: dict[str, type[RecurrentCell]] = {"gru": GRUCell, "lstm": LSTMCell}


class AdditiveAttention(nn.Module):
    """Additive attention (Bahdanau 2015): e_i = v . tanh(W_q s + W_k h_i + b)."""

    def __init__(self, state: int, memory: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(state, width, bias=False)
        self.keys = nn.Linear(memory, width)
        self.energy = nn.Linear(width, 1, bias=False)

    def weights(self, summed: Tensor, mask: Tensor) -> Tensor:
        """Pre-activation energies [S, N, I, a] and mask [S, I] -> a distribution over the source [S, N, I]."""
        return masked_softmax(self.energy(tanh(summed))[..., 0], mask[:, None])
