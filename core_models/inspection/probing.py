"""Probe for PAST and FUTURE: do the frozen states of a trained system tell which source words are translated?

A small network is trained, with the system's weights frozen, to classify PAST and FUTURE from the state z_t and the
memory h_i: w . tanh(W_z z_t + W_h h_i + b) + c, the energy of guided routing (Zheng 2019, Eq. 7). Its accuracy measures
the information in the states, whether or not a mechanism uses it. Works on tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core_models.layers.additive_energy import additive_energies
from core_models.system import BACKBONE, System
from core_models.text.batches import Batch

WIDTH, EPOCHS, LEARNING_RATE = 128, 6, 0.003


class Features(NamedTuple):
    """The inputs of a probe for S forced sentences: states z [S, T, z], annotations h [S, I, m]."""

    states: Tensor
    memory: Tensor


class Probe(nn.Module):
    """The logit of "PAST" of every source word at every target position."""

    def __init__(self, state: int, memory: int, width: int = WIDTH) -> None:
        super().__init__()
        self.state_norm, self.memory_norm = nn.LayerNorm(state), nn.LayerNorm(memory)
        self.query, self.key = nn.Linear(state, width), nn.Linear(memory, width, bias=False)
        self.weight = nn.Parameter(torch.randn(width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, features: Features) -> Tensor:
        """Logits [S, T, I] from states [S, T, z] and annotations [S, I, m]."""
        query, key = self.query(self.state_norm(features.states)), self.key(self.memory_norm(features.memory))
        return additive_energies(query, key, self.weight) + self.bias


@torch.no_grad()
def features(system: System, batch: Batch) -> Features:
    """States and annotations of a batch with forced targets; the system must be in evaluation mode."""
    encoded = system.encode(batch)
    forced = system(encoded, batch.target_in, batch.target_mask)
    return Features(forced.view.guide, encoded.sentence[BACKBONE]["memory"])


def taught(examples: Sequence[tuple[Features, Tensor]], seed: int = 1, epochs: int = EPOCHS) -> Probe:
    """Train a probe on features and labels [S, T, I]: 1 for PAST, 0 for FUTURE, negative for none.

    The same seed gives the same probe on one machine with the same number of threads.
    """
    first = examples[0][0]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        probe = Probe(first.states.shape[-1], first.memory.shape[-1]).to(first.states.device)
        optimizer = torch.optim.Adam(probe.parameters(), lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(examples))
        for _ in range(epochs):
            for number in torch.randperm(len(examples)).tolist():
                inputs, labels = examples[number]
                labeled = labels >= 0
                logits, targets = probe(inputs)[labeled], labels[labeled]
                loss = nn.functional.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return probe.eval()


@torch.no_grad()
def predict(probe: Probe, inputs: Features) -> Tensor:
    """The probability of PAST, [S, T, I]."""
    return torch.sigmoid(probe(inputs))
