"""Configurations of runs, read again only where a config.yaml has changed: runs are listed by the thousand.

Knows that file and what makes a run an outside one, nothing else of a run. Configurations are shared: do not change
them. Never imports torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from core_models.config import CONFIG, RunConfig, as_config
from core_models.settings import ConfigError, Section, parse, read_yaml
from workbench.store.file_cache import KeptByFiles

OUTSIDE = "outside"
MOST_RUNS = 20_000  # of which something is kept; a configuration takes about 8 kB


class OutsideConfig(Section):
    """The config.yaml of an outside run, which has no model, no training and no search."""

    kind: Literal["outside"] = "outside"
    name: str


_KEPT: KeptByFiles[RunConfig | OutsideConfig | str] = KeptByFiles(MOST_RUNS)


def config_of(folder: Path) -> RunConfig | OutsideConfig:
    """The configuration of a run folder; raises ConfigError naming the file and the key."""
    path = folder / CONFIG
    config = _KEPT.get(path, [path], lambda: _read(path))
    if isinstance(config, str):
        raise ConfigError(config)
    return config


def _read(path: Path) -> RunConfig | OutsideConfig | str:
    """The configuration, or a message that says why it cannot be read."""
    try:
        content = read_yaml(path)
        if content.get("kind") == OUTSIDE:
            return parse(OutsideConfig, content, where=str(path))
        return as_config(content, str(path))
    except ConfigError as error:
        if isinstance(error.__context__, OSError):  # of the disk, not of what is in the file: it may pass
            raise
        return str(error)
