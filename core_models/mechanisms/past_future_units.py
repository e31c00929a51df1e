"""Recurrent units of source contents, which add the attended contents to their state or subtract them (Zheng 2018).

Each reads c_t, the attended context, through the linear maps `from_context`, and its state through those of
`from_state`, so that their images can be computed together with others. Works on single positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from core_models.layers.recurrent import GRUCell

Images = Sequence[Tensor]
Linear = Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]]


class ContentUnit(nn.Module):
    """Base of all units: s_t = u * s_{t-1} + (1 - u) * candidate."""

    @property
    def from_context(self) -> tuple[nn.Linear, ...]:
        raise NotImplementedError

    @property
    def from_state(self) -> tuple[nn.Linear, ...]:
        raise NotImplementedError

    def content(self, context: Images) -> Tensor:
        """The image of c_t that enters the new state, [..., d]."""
        return context[-1]

    def gated(self, context: Images, recurrent: Images, linear: Linear) -> tuple[Tensor, Tensor]:
        """Update gate (share of the state that is kept) and candidate, [..., d], from images of c_t and s_{t-1}."""
        raise NotImplementedError

    def combine(self, context: Images, recurrent: Images, state: Tensor, linear: Linear) -> Tensor:
        """The new state from the images of c_t and s_{t-1}, and s_{t-1} [..., d]."""
        update, candidate = self.gated(context, recurrent, linear)
        return candidate + update * (state - candidate)

    def initialize(self) -> None:
        """Initialize maps of the context by Xavier's uniform rule, maps of the state as orthogonal matrices."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for linear in self.from_state:
            for matrix in linear.weight.data.split(linear.in_features):
                nn.init.orthogonal_(matrix)


class PlainUnit(ContentUnit):
    """GRU(s, c), Eq. 9 to 12 and 16: addition and subtraction are learned from the data only.

    The reset gate multiplies the image of the state, r * (U s), where Eq. 10 prints U (r * s).
    """

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.unit = GRUCell(context, width)
        self.initialize()

    @property
    def from_context(self) -> tuple[nn.Linear, ...]:
        return (self.unit.from_input,)

    @property
    def from_state(self) -> tuple[nn.Linear, ...]:
        return (self.unit.from_state,)

    def content(self, context: Images) -> Tensor:
        return context[0][..., 2 * self.unit.width :]

    def gated(self, context: Images, recurrent: Images, linear: Linear) -> tuple[Tensor, Tensor]:
        return self.unit.gated(context[0], recurrent[0])


class SubtractingUnit(ContentUnit):
    """Base of subtracting units: tanh((s W_s - c W_c) W + b).

    The extra map W is in the released code and not in Eq. 14 and 15 (D3); it can be left out.
    """

    def __init__(self, context: int, width: int, extra_map: bool) -> None:
        super().__init__()
        self.minuend = nn.Linear(width, width, bias=False)
        self.subtrahend = nn.Linear(context, width, bias=False)
        self.map = nn.Linear(width, width) if extra_map else None
        self.bias = None if extra_map else nn.Parameter(torch.zeros(width))

    def initialize(self) -> None:
        super().initialize()
        if self.map is not None:
            nn.init.orthogonal_(self.map.weight)

    def squashed(self, difference: Tensor, linear: Linear) -> Tensor:
        """Apply the extra map and tanh to a difference: tanh((s W_s - c W_c) W + b)."""
        if self.map is None:
            return torch.tanh(difference + self.bias)
        return torch.tanh(linear([self.map], difference)[0])


class OutsideMinusUnit(SubtractingUnit):
    """GRU-o, Eq. 13 and 14: GRU(s, M) with the remaining contents M = tanh((s U_m - c W_m) W + b)."""

    def __init__(self, context: int, width: int, extra_map: bool) -> None:
        super().__init__(context, width, extra_map)
        self.unit = GRUCell(width, width)
        self.initialize()

    @property
    def from_context(self) -> tuple[nn.Linear, ...]:
        return (self.subtrahend,)

    @property
    def from_state(self) -> tuple[nn.Linear, ...]:
        return (self.unit.from_state, self.minuend)

    def gated(self, context: Images, recurrent: Images, linear: Linear) -> tuple[Tensor, Tensor]:
        (entered,) = linear([self.unit.from_input], self.squashed(recurrent[1] - context[0], linear))
        return self.unit.gated(entered, recurrent[0])


class InsideMinusUnit(SubtractingUnit):
    """GRU-i, Eq. 15: the candidate is tanh((s W_h - r * (c W_c)) W + b).

    The published W (r * c) multiplies vectors of two widths; the released code multiplies after the map of c (D3).
    """

    def __init__(self, context: int, width: int, extra_map: bool) -> None:
        super().__init__(context, width, extra_map)
        self.context_gates = nn.Linear(context, 2 * width)
        self.state_gates = nn.Linear(width, 2 * width, bias=False)
        self.initialize()

    @property
    def from_context(self) -> tuple[nn.Linear, ...]:
        return (self.context_gates, self.subtrahend)

    @property
    def from_state(self) -> tuple[nn.Linear, ...]:
        return (self.state_gates, self.minuend)

    def gated(self, context: Images, recurrent: Images, linear: Linear) -> tuple[Tensor, Tensor]:
        reset, update = torch.sigmoid(context[0] + recurrent[0]).chunk(2, dim=-1)
        return update, self.squashed(recurrent[1] - reset * context[1], linear)


def future_unit(kind: str, context: int, width: int, extra_map: bool) -> ContentUnit:
    """Build the unit of the FUTURE layer: gru, gru-o or gru-i."""
    if kind == "gru":
        return PlainUnit(context, width)
    return (OutsideMinusUnit if kind == "gru-o" else InsideMinusUnit)(context, width, extra_map)
