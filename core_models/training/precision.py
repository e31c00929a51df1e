"""The precision of a training: `precision: auto` times steps of it in float32 and in bfloat16."""

from __future__ import annotations

import copy
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from core_models.config import TrainingConfig
from core_models.system import System
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import Batch
from core_models.training.loss_module import Objective, total_loss

Precision = Literal["float32", "bfloat16", "float64"]
TIMED: tuple[Precision, ...] = ("float32", "bfloat16")
TIMED_BATCHES = 10
FASTER = 1.2  # bfloat16 is taken if its steps are so many times as fast
FEWEST_STEPS = 500  # of a training for which timing pays: it takes as long as about 25 steps

MakeOptimizer = Callable[[System, TrainingConfig], torch.optim.Optimizer]


@dataclass(frozen=True)
class TimedPrecision:
    """The precision that `auto` stands for, and why."""

    precision: Precision
    seconds: dict[str, float]  # of the median step, by precision; empty if none was timed


@contextmanager
def allow_tf32(device: torch.device, allowed: bool) -> Iterator[None]:
    """Let a CUDA device multiply float32 matrices in TF32 inside the context; elsewhere nothing changes."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def planned_steps(loader: BatchLoader, training: TrainingConfig) -> int:
    """The updates of a whole training, by max_steps and by max_epochs of the length of the first."""
    by_steps = training.max_steps or math.inf
    if not training.max_epochs:
        return int(by_steps)
    return int(min(by_steps, math.ceil(len(loader.plan(0)) / training.accumulate) * training.max_epochs))


def timed_precision(
    system: System, training: TrainingConfig, loader: BatchLoader, make_optimizer: MakeOptimizer
) -> TimedPrecision:
    """Time the first batches of the first epoch in both precisions, by turns, each with forward, backward and update.

    The system and the generators of random numbers stay as they are: a copy trains. A precision whose step does not fit
    into the device's memory is not taken.
    """
    if planned_steps(loader, training) < FEWEST_STEPS:
        return TimedPrecision("float32", {})
    device = system.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        copied = copy.deepcopy(system).train()
        objective = Objective(copied, training.label_smoothing)
        optimizer = make_optimizer(copied, training)
        batches = [batch.to(device) for batch in itertools.islice(loader.epoch(0), TIMED_BATCHES)]
        steps: list[dict[str, float]] = [
            {name: _step_seconds(objective, optimizer, batch, name) for name in TIMED}
            for batch in [batches[0], *batches]  # the first step also makes the optimizer's tensors
        ]
    return choose({name: [step[name] for step in steps[1:]] for name in TIMED})


def choose(seconds: dict[str, list[float]]) -> TimedPrecision:
    """Choose by the median ratio of a batch's two times, so that one disturbed step decides nothing.

    seconds: of a step on each batch, by precision; infinite if the batch did not fit into memory.
    """
    pairs = zip(*(seconds[name] for name in TIMED), strict=True)
    ratios = [1.0 if math.isinf(lower) else full / lower for full, lower in pairs]
    precision: Precision = "bfloat16" if statistics.median(ratios) >= FASTER else "float32"
    return TimedPrecision(precision, {name: statistics.median(times) for name, times in seconds.items()})


def _step_seconds(objective: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch, precision: str) -> float:
    """Seconds of one update; infinite if it does not fit into the device's memory."""
    device = batch.source.device
    _wait_for(device)
    began = time.perf_counter()
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            terms = objective(batch)
        (total_loss(terms) / batch.target_tokens).backward()
        nn.utils.clip_grad_norm_(objective.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    except torch.OutOfMemoryError:
        return math.inf
    _wait_for(device)
    return time.perf_counter() - began


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
