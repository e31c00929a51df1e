"""What is computed in float32 or better stays so whatever comes in: bfloat16 weights and sums, or autocast."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any

import pytest
import torch

import core_models
from core_models.layers.additive_energy import additive_energies
from core_models.layers.masked_softmax import masked_softmax
from core_models.layers.precision import wide
from core_models.layers.sparsemax import sparsemax
from core_models.layers.vocabulary_head import one_logit
from core_models.mechanisms.coverage import accumulated
from core_models.mechanisms.gaussian_prior import nearest_words
from core_models.mechanisms.guided_contents import attend, classify
from core_models.mechanisms.selective_attention import shared
from core_models.routing.algorithms import (
    dynamic_routing,
    em_routing,
    simple_routing,
    squash,
    squash_unit_slope,
    unit_scale,
)
from core_models.routing.guided import first_capsules, plan, route
from core_models.routing.query_guided import correlations, query_guided_routing, shared_dynamic_routing

GENERATOR = torch.Generator().manual_seed(5)
MASK = torch.tensor([[True, True, True, False, False], [True] * 5])


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR)


def weights(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=GENERATOR)


VOTES, PROJECTIONS = drawn(2, 5, 3, 4), (drawn(4, 4), drawn(4, 4))
CASES: dict[Callable[..., Any], tuple[Any, ...]] = {
    squash: (drawn(2, 5, 4),),
    squash_unit_slope: (drawn(2, 5, 4),),
    unit_scale: (drawn(2, 5, 4),),
    simple_routing: (drawn(2, 3, 5, 4),),
    dynamic_routing: (drawn(2, 3, 5, 4),),
    em_routing: (drawn(2, 3, 5, 1), weights(2, 3), drawn(5), drawn(5)),
    plan: (VOTES, *PROJECTIONS, MASK),
    first_capsules: (VOTES.transpose(1, 2), MASK),
    route: (drawn(2, 6, 4), plan(VOTES, *PROJECTIONS, MASK), PROJECTIONS[1], drawn(4), MASK),
    correlations: (drawn(2, 5, 4), drawn(2, 3, 4)),
    query_guided_routing: (drawn(2, 5, 4), drawn(2, 4), drawn(3, 4, 4), MASK),
    shared_dynamic_routing: (drawn(2, 5, 4), drawn(3, 4, 4), MASK),
    one_logit: (drawn(7, 4), drawn(4)),
    sparsemax: (drawn(2, 5), MASK),
    masked_softmax: (drawn(2, 5), MASK),
    additive_energies: (drawn(2, 6, 4), drawn(2, 5, 4), drawn(4)),
    accumulated: (weights(2, 6, 5), weights(2, 6, 5), weights(2, 5) + 1, "bounded"),
    nearest_words: (drawn(40, 4), torch.tensor([4, 5, 9]), 36),
    shared: (drawn(2, 5), MASK, "softmax"),
    classify: (drawn(2, 3, 6, 5), drawn(2, 2, 5, 4), MASK),
    attend: (drawn(2, 2, 6, 5), drawn(2, 2, 5, 4), MASK),
}


def tensors(found: Any) -> list[torch.Tensor]:
    """All tensors of a result, one after the other."""
    if isinstance(found, torch.Tensor):
        return [found]
    parts = [getattr(found, field.name) for field in fields(found)] if is_dataclass(found) else found
    return [tensor for part in parts if part is not None for tensor in tensors(part)]


def _to(dtype: torch.dtype, value: Any) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_a_result_is_that_of_float32(function):
    narrow = [_to(torch.bfloat16, one) for one in CASES[function]]
    wanted = tensors(function(*(_to(torch.float32, one) for one in narrow)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = tensors(function(*narrow))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype != torch.bfloat16
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_every_such_function_is_tried():
    code = wide(torch.abs).__code__  # of the function that stands for each
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(core_models.__path__, "core_models.")
    ]
    decorated = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, FunctionType) and value.__code__ is code
    }
    assert decorated == set(CASES)
