"""A probe: how much frozen states of a trained system say of which source words are translated.

A small network is taught, with the weights of the system left as they are, to tell PAST from FUTURE by the state z_t
and the memory h_i alone: w . tanh(W_z z_t + W_h h_i + b) + c, the energy that guided routing itself uses (Zheng 2019,
Eq. 7). What it reaches is there to be read, whatever a mechanism makes of it. Knows tensors, neither texts nor truth.
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
    """What a probe reads of S forced sentences: states z [S, T, z], annotations h [S, I, m]."""

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
        """[S, T, z] and [S, I, m] -> logits [S, T, I]."""
        query, key = self.query(self.state_norm(features.states)), self.key(self.memory_norm(features.memory))
        return additive_energies(query, key, self.weight) + self.bias


@torch.no_grad()
def features(system: System, batch: Batch) -> Features:
    """States and annotations of a batch whose targets are forced; the system is to be in evaluation mode."""
    encoded = system.encode(batch)
    forced = system(encoded, batch.target_in, batch.target_mask)
    return Features(forced.view.guide, encoded.sentence[BACKBONE]["memory"])


def taught(examples: Sequence[tuple[Features, Tensor]], seed: int = 1, epochs: int = EPOCHS) -> Probe:
    """A probe that learned from examples: features and labels [S, T, I], 1 for PAST, 0 for FUTURE, else not asked.

    The same seed gives the same probe on one machine and number of threads.
    """
    first = examples[0][0]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        probe = Probe(first.states.shape[-1], first.memory.shape[-1]).to(first.states.device)
        optimiser = torch.optim.Adam(probe.parameters(), lr=LEARNING_RATE)
        slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * len(examples))
        for _ in range(epochs):
            for place in torch.randperm(len(examples)).tolist():
                read, labels = examples[place]
                asked = labels >= 0
                logits, wanted = probe(read)[asked], labels[asked]
                loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted.to(logits.dtype))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                slower.step()
    return probe.eval()


@torch.no_grad()
def predict(probe: Probe, read: Features) -> Tensor:
    """The probability of PAST, [S, T, I]."""
    return torch.sigmoid(probe(read))
