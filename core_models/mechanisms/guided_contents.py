"""PAST and FUTURE contents by guided routing, by a classifier, or by two attentions (Zheng 2019, Fig. 6).

Each computes a vector of the translated and one of the untranslated contents from the memory and the decoding state.
`plan` computes what does not depend on the target position, once per sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from core_models.interface.mechanism import MechanismState
from core_models.layers.additive_energy import additive_energies
from core_models.layers.masked_softmax import masked_softmax
from core_models.layers.precision import wide
from core_models.routing.algorithms import Routing, squash
from core_models.routing.guided import GuidedRoutingOptions, Plan, first_assignments, first_capsules, plan, route

GROUPS = ("past", "future", "redundant")  # the order of capsules, classes and the trace's groups


class Contents(NamedTuple):
    """PAST and FUTURE, [S, N, G] each."""

    past: Tensor
    future: Tensor


class CapsuleContents(nn.Module):
    """Contents as capsules, concatenated per group (Algorithm 1). memory: width of the voting vectors."""

    def __init__(self, memory: int, capsules: int, width: int, redundant: bool) -> None:
        super().__init__()
        self.per_group = capsules // 2
        self.count = (3 if redundant else 2) * self.per_group
        self.vote = nn.Linear(memory, self.count * width, bias=False)  # W_j side by side

    def initialize(self, as_released: bool) -> None:
        for matrix in self.vote.weight.data.chunk(self.count):
            _initialize(matrix, 0.01 if as_released else None)

    def votes(self, memory: Tensor) -> Tensor:
        """Votes [S, I, J, D] of the memory [S, I, d]."""
        return self.vote(memory).unflatten(-1, (self.count, -1))

    def contents_of(self, routing: Routing, own_state: MechanismState) -> Contents:
        """PAST and FUTURE of a routing; records the routing in the trace."""
        capsules = routing.capsules
        axes = ("target", "iteration", "source", "capsule")
        own_state.record("assignments", axes, lambda: routing.assignments.movedim(0, 2), sums_to_one="capsule")
        own_state.record(
            "mass",
            ("target", "source", "group"),
            lambda: (
                routing.history[-1].unflatten(-1, (-1, self.per_group)).sum(-1).expand(-1, capsules.shape[1], -1, -1)
            ),
            sums_to_one="group",
        )
        past, future = capsules[:, :, : 2 * self.per_group].unflatten(2, (2, self.per_group)).flatten(-2).unbind(2)
        return Contents(past, future)


class UniformContents(CapsuleContents):
    """Routing with one iteration: uniform assignments, no guidance; only the votes are learned."""

    def plan(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return {"capsules": first_capsules(self.votes(memory).transpose(1, 2), mask)}

    def forward(self, guide: Tensor, mask: Tensor, own_state: MechanismState) -> Contents:
        capsules = own_state.sentence["capsules"]
        assignments = first_assignments(mask, self.count, capsules.dtype)
        return self.contents_of(
            Routing(capsules[:, None].expand(-1, guide.shape[1], -1, -1), (assignments,)), own_state
        )


class GuidedContents(CapsuleContents):
    """Capsules by guided dynamic routing."""

    def __init__(
        self, memory: int, guide: int, capsules: int, width: int, redundant: bool, options: GuidedRoutingOptions
    ) -> None:
        super().__init__(memory, capsules, width, redundant)
        self.options = options
        self.query = nn.Linear(guide, width)  # W_z, and the bias of the whole agreement
        self.from_vote = nn.Parameter(torch.empty(width, width))  # W_v
        self.from_capsule = nn.Parameter(torch.empty(width, width))  # W_o
        self.weight = nn.Parameter(torch.empty(width))  # w

    def initialize(self, as_released: bool) -> None:
        super().initialize(as_released)
        for parameter in (self.query.weight, self.from_vote, self.from_capsule, self.weight):
            _initialize(parameter.data, 0.001 if as_released else None)
        nn.init.zeros_(self.query.bias)

    def plan(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return plan(self.votes(memory), self.from_vote, self.from_capsule, mask)._asdict()

    def forward(self, guide: Tensor, mask: Tensor, own_state: MechanismState) -> Contents:
        sentence_plan = Plan(*(own_state.sentence[name] for name in Plan._fields))
        routing = route(self.query(guide), sentence_plan, self.from_capsule, self.weight, mask, **self.options)
        return self.contents_of(routing, own_state)


class SimpleContents(nn.Module):
    """Shared part of classifier and attention: additive energies of every word for each group, and values.

    groups: their number; shared: all groups use the same queries and keys.
    """

    sums_to_one: str

    def __init__(self, memory: int, guide: int, width: int, content: int, groups: int, shared: bool) -> None:
        super().__init__()
        self.groups, self.sets = groups, 1 if shared else groups
        self.query = nn.Linear(guide, self.sets * width)
        self.key = nn.Linear(memory, self.sets * width, bias=False)
        self.weight = nn.Parameter(torch.empty(groups, width))
        self.value = nn.Linear(memory, 2 * content, bias=False)

    def initialize(self, as_released: bool) -> None:
        for linear, parts in ((self.query, self.sets), (self.key, self.sets), (self.value, 2)):
            for matrix in linear.weight.data.chunk(parts):
                _initialize(matrix, 0.001 if as_released else None)
        _initialize(self.weight.data, 0.001 if as_released else None)
        nn.init.zeros_(self.query.bias)

    def plan(self, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
        values = self.value(memory).unflatten(-1, (2, -1)).transpose(1, 2)
        return {
            "keys": self._split_sets(self.key(memory)),
            "values": values.contiguous(),
        }  # [S, sets, I, a], [S, 2, I, G]

    def forward(self, guide: Tensor, mask: Tensor, own_state: MechanismState) -> Contents:
        query, keys = self._split_sets(self.query(guide)), own_state.sentence["keys"]
        groups = (-1, self.groups, -1, -1)
        energies = additive_energies(query.expand(groups), keys.expand(groups), self.weight)  # [S, groups, N, I]
        contents, shares = self.gather(energies, own_state.sentence["values"], mask)
        own_state.record("mass", ("target", "source", "group"), lambda: shares.permute(0, 2, 3, 1), self.sums_to_one)
        return Contents(*contents.unbind(1))

    def _split_sets(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.sets, -1)).transpose(1, 2)

    def gather(self, energies: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class ClassifierContents(SimpleContents):
    """CLF: probabilities of PAST, FUTURE and REDUNDANT for every word, without iterations (footnote 5, A14)."""

    sums_to_one = "group"

    def __init__(self, memory: int, guide: int, width: int, content: int) -> None:
        super().__init__(memory, guide, width, content, len(GROUPS), shared=True)

    def gather(self, energies: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return classify(energies, values, mask)


class AttentionContents(SimpleContents):
    """ATTN: two separate attentions over the source words, for PAST and for FUTURE (A14)."""

    sums_to_one = "source"

    def __init__(self, memory: int, guide: int, width: int, content: int, squashed: bool) -> None:
        super().__init__(memory, guide, width, content, 2, shared=False)
        self.squashed = squashed

    def gather(self, energies: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        contents, shares = attend(energies, values, mask)
        return squash(contents) if self.squashed else contents, shares


@wide
def classify(energies: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over groups, words summed and squashed: [S, 3, N, I], [S, 2, I, G] -> [S, 2, N, G], shares."""
    shares = torch.softmax(energies, dim=1) * mask[:, None, None]
    return squash(shares[:, :2] @ values), shares


@wide
def attend(energies: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over words, words summed: [S, 2, N, I], [S, 2, I, G] -> [S, 2, N, G], shares; zeros without words."""
    shares = masked_softmax(energies, mask[:, None, None])
    return shares @ values, shares


def _initialize(matrix: Tensor, deviation: float | None) -> None:
    """Initialize normally with this deviation, or by Xavier if None; a vector counts as a matrix of one row."""
    if deviation is not None:
        nn.init.normal_(matrix, std=deviation)
    else:
        nn.init.xavier_uniform_(matrix if matrix.dim() > 1 else matrix[None])
