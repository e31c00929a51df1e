"""Batches of few shapes: filled up they train the same, and no shape of a step depends on what is in a batch."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from core_models.backbones import search_slots
from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.interface.search_state import FixedShapes
from core_models.system import System
from core_models.system_catalogue import catalogue
from core_models.text.batches import Batch
from core_models.text.buckets import filled, rounded
from core_models.training.loss_module import Objective
from tests.core_models import laws
from tests.core_models.laws import SYSTEMS, batch_of, random_sentences, random_system, training_terms
from tests.fake_cuda import CUDA, FakeCuda

pytestmark = pytest.mark.long
LENGTH = 8  # of the bucket of all sentences here
ALWAYS = ("transformer", "gdr-bow-bca", "pfrnn-loss", "qcn-reg", "san", "future-cost-2", "biarn", "d2gpo")


def each(names):
    """A parameter for each system; those of a few families are tested always."""
    marked = [
        n if n in ALWAYS or not isinstance(n, str) else pytest.param(n, marks=pytest.mark.exhaustive) for n in names
    ]
    return pytest.mark.parametrize("name", marked)


class Shapes(TorchDispatchMode):
    """The operators that are called inside the context, each with the shapes it is given and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls.append((str(func), *map(_shapes, (args, kwargs, result))))
        return result


def _shapes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, list | tuple):
        return tuple(map(_shapes, value))
    return value if isinstance(value, int) and not isinstance(value, bool) else type(value).__name__


def some_batch(system, seed: int) -> Batch:
    """Three to five sentences of different lengths, all of one bucket."""
    lengths = {1: ([5, 2, 3], [2, 6, 0]), 2: ([7, 1, 4, 6, 3], [5, 5, 1, 7, 2])}[seed]
    return batch_of(system, *(random_sentences(side, seed + place) for place, side in enumerate(lengths)))


def in_bucket(system, batch: Batch) -> Batch:
    """The batch filled up to six sentences."""
    use = system.context
    context = 0 if use.joined else use.entries * LENGTH * (1 + use.outputs)
    return filled(batch, 6 * (max(LENGTH, int(rounded(batch.source.shape[1]))) + context))


@each(SYSTEMS)
def test_a_filled_batch_has_the_losses_and_gradients_of_the_batch(name):
    system = random_system(name)
    batch = some_batch(system, 1)
    bucketed = in_bucket(system, batch)
    assert len(bucketed) > len(batch) == bucketed.real_sentences
    terms, others = (training_terms(system, each) for each in (batch, bucketed))
    for term, value in terms.items():
        torch.testing.assert_close(others[term][: len(batch)], value, atol=1e-9, rtol=1e-9)
        assert not others[term][len(batch) :].any()
    sums, gradients = [], []
    for each in (batch, bucketed):
        system.zero_grad()
        loss = torch.stack([term.sum() for term in Objective(system.train(), 0.1)(each).values()]).sum()
        loss.backward()
        sums.append(loss.detach())
        gradients.append([parameter.grad.clone() for parameter in system.parameters() if parameter.grad is not None])
    torch.testing.assert_close(sums[1], sums[0], atol=1e-9, rtol=1e-9)
    for gradient, other in zip(*gradients, strict=True):
        torch.testing.assert_close(other, gradient, atol=1e-9, rtol=1e-9)


@each(list(catalogue()))
def test_shapes_of_a_training_step_depend_on_the_bucket_alone(name, monkeypatch):
    monkeypatch.setattr(laws, "DEVICE", str(CUDA))
    calls = []
    with FakeCuda():
        system = random_system(name, torch.float32)
        for seed in (1, 2, 1):  # the first step also makes what later ones keep
            batch = in_bucket(system, some_batch(system, seed))
            with Shapes() as shapes:
                torch.stack([term.sum() for term in Objective(system.train(), 0.1)(batch).values()]).sum().backward()
            calls.append(shapes.calls)
    assert calls[1] == calls[2]


class ShapesByStep:
    """A system that is searched, with the shapes of the operators of each of its steps."""

    def __init__(self, system: System) -> None:
        self.system, self.steps = system, list[list[tuple]]()

    def start(self, encoded: Any, fixed: FixedShapes | None = None) -> Any:
        return self.system.start(encoded, fixed)

    def step(self, words: Tensor, state: Any) -> Any:
        with Shapes() as shapes:
            scores, state = self.system.step(words, state)
            state.select(None, torch.zeros_like(words))
        self.steps.append(shapes.calls)
        return scores, state


@each(list(catalogue()))
def test_shapes_of_a_search_do_not_depend_on_the_position_and_it_finds_the_same(name, monkeypatch):
    """Four sentences; without fixed shapes the first slots are enough for four words a beam."""
    monkeypatch.setattr(search_slots, "FIRST_SLOTS", 12)
    system = random_system(name)
    batch = batch_of(system, random_sentences([5, 2, 3, 4], 1), random_sentences([2, 6, 0, 1], 2))
    limits, config = torch.tensor([3, 13, 9, 13]), SearchConfig(beam=3, n_best=3)
    with torch.inference_mode():
        growing = beam_search(system, system.encode(batch), limits, config)
        watched = ShapesByStep(system)
        fixed = beam_search(watched, system.encode(batch), limits, config.model_copy(update={"compile": True}))
    for result, other in zip(growing, fixed, strict=True):
        assert [hypothesis.words for hypothesis in other.hypotheses] == [h.words for h in result.hypotheses]
        assert [h.score for h in other.hypotheses] == pytest.approx([h.score for h in result.hypotheses], abs=1e-9)
    different = [watched.steps[0]]
    for step in watched.steps[1:]:
        if step != different[-1]:
            different.append(step)
    assert len(watched.steps) > 8
    assert len(different) <= 3, "of 4, 2 and 1 sentences"
