"""How large weights are before training, of every parameter of the catalogue: it decides which systems learn at all.

A rule says for a class of modules and one of its parameters how it is drawn, from its shape alone; where modules are
nested, the outermost rule counts. Deviations are those of the distribution, within five standard errors of what so many
numbers show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from core_models.backbones.rnnsearch import RNNSearch
from core_models.layers.positional_embedding import PositionalEmbedding
from core_models.layers.recurrent import LSTMCell, RecurrentCell
from core_models.mechanisms.capsule_regularization import CapsuleRegularization
from core_models.mechanisms.future_cost import FutureCost
from core_models.mechanisms.gaussian_prior import GaussianPrior
from core_models.mechanisms.guided_capsules import Gate, GuidedCapsules
from core_models.mechanisms.guided_contents import (
    AttentionContents,
    CapsuleContents,
    ClassifierContents,
    GuidedContents,
    SimpleContents,
)
from core_models.mechanisms.head_aggregation import HeadMaps, HeadRouting
from core_models.mechanisms.layer_aggregation import DrawnWeights, WeightedSum
from core_models.mechanisms.layer_routing import EMRouting, LayerMaps
from core_models.mechanisms.past_future_heads import ChangeHead
from core_models.mechanisms.past_future_units import ContentUnit, SubtractingUnit
from core_models.mechanisms.query_capsules import QueryCapsules
from core_models.system import System
from core_models.system_builder import build
from core_models.system_catalogue import SYSTEMS
from core_models.system_spec import describe

pytestmark = pytest.mark.long

SIZES = "d_model=64,ffn_dim=160,encoder_layers=2,decoder_layers=3,heads=4"
RECURRENT = f"{SIZES},embedding=48"
RELEASED = "initialisation=released"
OPTIONS = [
    "transformer:position_embedding=learned",
    "transformer:norm=post",
    "rnnsearch:rnn_cell=lstm",
    "linear-combination:form=matrix_top",
    "linear-combination:form=matrix_dense",
    "dynamic-combination:form=per_layer",
    "dynamic-routing:inputs=own,votes=concatenated",
    "em-routing:inputs=own,votes=concatenated",
    "head-aggregation:attentions=[decoder_self,decoder_cross],inputs=own,input_width=200",
    "head-aggregation:routing=simple",
    "biarn:unit=lstm,short_cut=false",
    "biarn:recurrence=words",
    f"gdr-bow-bca:{RELEASED}",
    f"clf-bow-bca:{RELEASED}",
    f"attn-bow-bca:{RELEASED}",
    "gdr:combination=gate",
    "gdr:iterations=1",
    "coverage:form=neural",
    "frnn-gru-o:extra_map=false",
    "pfrnn-loss:softmax=own",
    "future-cost-2:tied_head=false,main_tanh_head=true",
    "qcn:transforms=per_distance",
    "d2gpo:order=first",
]


@dataclass(frozen=True)
class Constant:
    """Every number is this one."""

    value: float

    def holds(self, found: Tensor) -> None:
        torch.testing.assert_close(found, torch.full_like(found, self.value))


@dataclass(frozen=True)
class Normal:
    """Normal numbers around zero."""

    deviation: float

    def holds(self, found: Tensor) -> None:
        assert float(found.square().mean().sqrt()) == pytest.approx(
            self.deviation, rel=5 * math.sqrt(0.5 / found.numel())
        )
        assert abs(float(found.mean())) < 5 * self.deviation / math.sqrt(found.numel())
        assert found.numel() < 200 or float(found.abs().max()) > math.sqrt(3) * self.deviation  # else they are uniform


@dataclass(frozen=True)
class Xavier:
    """Uniform numbers whose variance is 2 / (inputs + outputs) of each block [.., inputs or outputs, the other]."""

    cut: Callable[[Tensor], Sequence[Tensor]] = lambda whole: [whole]

    def holds(self, found: Tensor) -> None:
        for block in self.cut(found):
            assert block.dim() == 2
            deviation = math.sqrt(2 / sum(block.shape))
            assert float(block.abs().max()) <= math.sqrt(3) * deviation
            assert float(block.square().mean().sqrt()) == pytest.approx(
                deviation, rel=5 * math.sqrt(0.2 / block.numel())
            )


@dataclass(frozen=True)
class Orthogonal:
    """Square blocks below one another, each orthogonal."""

    def holds(self, found: Tensor) -> None:
        for block in found.split(found.shape[1]):
            torch.testing.assert_close(block @ block.T, torch.eye(len(block)), atol=1e-5, rtol=0)


@dataclass(frozen=True)
class Exactly:
    """What is computed from the rest of the system."""

    value: Tensor

    def holds(self, found: Tensor) -> None:
        torch.testing.assert_close(found, self.value)


Rule = Constant | Normal | Xavier | Orthogonal | Exactly


def _rows(parts: int) -> Xavier:
    return Xavier(lambda whole: whole.chunk(parts))


def _stacked(whole: Tensor) -> Sequence[Tensor]:
    """The matrices of an array [.., rows, columns]."""
    return list(whole.flatten(0, -3))


def _even(module: WeightedSum) -> Exactly:
    layers, width, *square = module.weight.shape
    return Exactly((torch.eye(width) if square else torch.ones(width)).expand(module.weight.shape) / layers)


def _guided(of: GuidedCapsules, rule: Rule, released: float) -> Rule:
    return Normal(released) if of.options.initialisation == "released" else rule


def _sets(of: GuidedCapsules) -> int:
    """Maps side by side: of a classifier one for all groups, of the two attentions one each."""
    return 1 if isinstance(of.contents, ClassifierContents) else 2


def _contents(of: GuidedCapsules, name: str) -> Rule:
    """Xavier's rule map by map; of released weights votes have a deviation of 0.01, all others of 0.001."""
    contents = of.contents
    assert isinstance(contents, SimpleContents | CapsuleContents)
    if name == "query.bias":
        return Constant(0)
    if name == "vote.weight":
        assert isinstance(contents, CapsuleContents)
        return _guided(of, _rows(contents.count), 0.01)
    if name == "value.weight":
        return _guided(of, _rows(2), 0.001)
    if isinstance(contents, AttentionContents | ClassifierContents) and name in ("query.weight", "key.weight"):
        return _guided(of, _rows(_sets(of)), 0.001)
    assert isinstance(contents, GuidedContents) or name == "weight"
    return _guided(of, Xavier(lambda whole: [whole if whole.dim() > 1 else whole[None]]), 0.001)


def _agreement(of: GuidedCapsules, side: str) -> Normal:
    return Normal(of.agree[side].weight.numel() ** -0.5)


def _drawn(module: DrawnWeights) -> Xavier:
    return Xavier() if module.shared else Xavier(_stacked)


def _hidden(module: DrawnWeights) -> Xavier:
    return _rows(1 if module.shared else module.layers)


def _columns(module: LayerMaps) -> Xavier:
    return Xavier(lambda whole: whole.chunk(module.layers, dim=1))


def _forget_gate_open(module: LSTMCell) -> Exactly:
    return Exactly(torch.cat([torch.full((module.width,), value) for value in (0.0, 1.0, 0.0, 0.0)]))


OF_CONTENTS = (
    *("vote.weight", "query.weight", "query.bias", "key.weight", "value.weight"),
    *("from_vote", "from_capsule", "weight"),
)
RULES: dict[type[nn.Module], dict[str, Callable]] = {
    nn.LayerNorm: {"weight": lambda m: Constant(1), "bias": lambda m: Constant(0)},
    nn.Linear: {"weight": lambda m: Xavier(), "bias": lambda m: Constant(0)},
    nn.Embedding: {"weight": lambda m: Normal(m.embedding_dim**-0.5)},
    PositionalEmbedding: {"learned": lambda m: Normal(m.width**-0.5)},
    RNNSearch: {"vocabulary_bias": lambda m: Constant(0)},
    RecurrentCell: {"from_state.weight": lambda m: Orthogonal()},
    LSTMCell: {"from_input.bias": _forget_gate_open},
    ContentUnit: {"state_gates.weight": lambda m: Orthogonal()},
    SubtractingUnit: {
        "minuend.weight": lambda m: Orthogonal(),
        "map.weight": lambda m: Orthogonal(),
        "bias": lambda m: Constant(0),
    },
    FutureCost: {"future_matrix": lambda m: Xavier()},
    GaussianPrior: {"nearest": lambda m: Constant(-1)},
    WeightedSum: {"weight": _even},
    DrawnWeights: {
        "drawn": _drawn,
        "hidden.weight": _hidden,
        "bias": lambda m: Constant(1 / m.layers),
    },
    LayerMaps: {"weight": _columns},
    EMRouting: {
        **{f"active.{side}": lambda m: Normal(m.width**-0.5) for side in ("encoder", "decoder")},
        **{f"beta_{of}.{side}": lambda m: Constant(0) for of in "au" for side in ("encoder", "decoder")},
    },
    HeadMaps: {"weight": lambda m: Xavier(_stacked)},
    HeadRouting: {
        "active": lambda m: Normal(m.active.shape[1] ** -0.5),
        "beta_a": lambda m: Constant(0),
        "beta_u": lambda m: Constant(0),
    },
    GuidedCapsules: {
        **{f"contents.{name}": lambda m, name=name: _contents(m, name) for name in OF_CONTENTS},
        **{f"agree.{side}.weight": lambda m, side=side: _agreement(m, side) for side in ("past", "future")},
    },
    Gate: {f"{name}.weight": lambda m: _rows(3) for name in ("gate", "change")},
    CapsuleRegularization: {f"transform.{side}": lambda m: Xavier(_stacked) for side in ("source", "target")},
    QueryCapsules: {"from_distance": lambda m: Xavier(), "transform": lambda m: Xavier(_stacked)},
}  # fmt: skip


def _rule(system: System, name: str) -> Rule:
    """The outermost rule for a parameter; heads of their own begin as the system's head."""
    parts, module = name.split("."), system
    for place in range(len(parts)):
        rest = ".".join(parts[place:])
        if isinstance(module, ChangeHead) and rest in ("matrix", "bias"):
            matrix, bias = system.backbone.output_matrix
            copied = matrix if rest == "matrix" else bias
            return Constant(0) if copied is None else Exactly(copied)
        for kind in type(module).__mro__:
            if rest in RULES.get(kind, {}):
                return RULES[kind][rest](module)
        module = getattr(module, parts[place]) if not parts[place].isdigit() else module[int(parts[place])]
    raise AssertionError(f"no rule says how large {name} is at first: add one")


@pytest.mark.parametrize("described", [*SYSTEMS, *OPTIONS])
def test_every_weight_begins_as_large_as_its_rule_says(described):
    torch.manual_seed(3)
    recurrent = SYSTEMS[described.partition(":")[0]].model.get("backbone") == "rnnsearch"
    sizes = RECURRENT if recurrent else SIZES
    system = build(describe(f"{described}{',' if ':' in described else ':'}{sizes}"), 300)
    wrong = []
    for name, parameter in system.named_parameters():
        try:
            _rule(system, name).holds(parameter.detach())
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
