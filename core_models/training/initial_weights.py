"""The weights a run began from, made again: its configuration, its seed, and the run it was begun from, if any.

Knows the files of a run and how training seeds a system; what the weights are compared for is others' business.
"""

from __future__ import annotations

from pathlib import Path

import torch

from core_models.checkpoint import initialize_from, vocabularies_of
from core_models.config import read_config
from core_models.system_builder import build
from core_models.translator import Translator


def untrained(folder: str | Path) -> Translator:
    """The system of a run folder as it was before its first update, in float32 on the CPU.

    Raises ConfigError, or CheckpointError where the run that it was begun from is gone.
    """
    folder = Path(folder)
    config = read_config(folder)
    source, target = vocabularies_of(folder)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.training.seed)  # as `training.fit` does before it builds
        system = build(config.model, len(source), len(target))
    if config.training.init_from is not None:
        initialize_from(system, config.training.init_from, (source, target), config.training.init_params)
    return Translator(system.eval(), source, target, config.search)
