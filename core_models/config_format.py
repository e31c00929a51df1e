"""Configurations that earlier releases wrote, with the defaults of their time.

A run keeps the options that were given, not the defaults. Where a default has changed since, a run of an older format
gets the default that it was trained with, so that its weights stay in the system they were made for. Format 3 renamed
some settings; `settings.Section` reads the earlier names. Until format 3 a search had GNMT's length penalty by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from core_models.settings import ConfigError

FORMAT: Final = 4  # of configurations that are written now

Options = dict[str, Any]


def upgraded(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A configuration as it was read, of any format, as one of this format.

    Raises ConfigError for a format that a later release wrote.
    """
    written = content.get("format", 1)
    if not isinstance(written, int) or isinstance(written, bool) or not 1 <= written <= FORMAT:
        raise ConfigError(
            f"{where}: format: {written!r}, and this release reads 1 to {FORMAT}; open the run with a newer release"
        )
    model = content.get("model")
    if written < 2 and isinstance(model, Mapping) and isinstance(model.get("mechanisms"), list | tuple):
        model = {**model, "mechanisms": [_with_former_defaults(entry) for entry in model["mechanisms"]]}
        content = {**content, "model": model}
    if written < 4 and isinstance(search := content.get("search", {}), Mapping):
        content = {**content, "search": {"penalty": "gnmt", **search}}
    return {**content, "format": FORMAT}


def _with_former_defaults(entry: Any) -> Any:
    """An entry {mechanism: options} of format 1 with the defaults that have changed in format 2.

    What is no entry, or no options, stays as it is: it is refused where it is parsed.
    """
    return {kind: _completed(kind, options) for kind, options in entry.items()} if isinstance(entry, Mapping) else entry


def _completed(kind: str, options: Any) -> Any:
    """Options with what this kind of mechanism did in format 1 without being told."""
    former = FORMER_DEFAULTS.get(kind)
    given: Any = {} if options is None else options
    return {**former(given), **given} if former and isinstance(given, dict) else options


# What format 1 did without being told: capsules went to a layer norm unscaled, and ATTN's contents were not squashed.
FORMER_DEFAULTS: Mapping[str, Callable[[Options], Options]] = {
    "dynamic_routing": lambda options: {"scale": "none"},
    "em_routing": lambda options: {"scale": "none"},
    "query_capsules": lambda options: {"scale": "none"},
    "guided_capsules": lambda options: {"attention_squash": False} if options.get("routing") == "attention" else {},
}
