"""The initial weights of a run, reproduced from its configuration, its seed, and the run in `init_from`, if any."""

from __future__ import annotations

from pathlib import Path

import torch

from core_models.checkpoint import initialize_from, vocabularies_of
from core_models.config import read_config
from core_models.system_builder import build
from core_models.translator import Translator


def untrained(folder: str | Path) -> Translator:
    """The system of a run folder before its first update, in float32 on the CPU.

    Raises ConfigError, or CheckpointError if the run in `init_from` is gone.
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
