"""Parse system descriptions, `name:key=value,...` and `name+name:...`, to model configurations.

`name:key=value,key=[value,value]` changes a system: a key of the model (preset, norm, backbone, ...) or an option of
the mechanism that has it. `name+name:...` joins the mechanisms of systems in this order, on the backbone of the first;
an option that several of them have is written `mechanism.option=value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from core_models.config import PRESETS, ModelConfig
from core_models.interface.mechanism import Options
from core_models.settings import ConfigError, nearest, parse, read_value, settings_in
from core_models.system_catalogue import MECHANISMS, SYSTEMS, catalogue


def parts_of(description: str) -> tuple[list[str], list[str]]:
    """The system names in `name:key=value,...` or `name+name:...`, and the settings, `key=value` each.

    Raises ConfigError with the closest known name for an unknown system.
    """
    names, _, settings = description.partition(":")
    systems = names.split("+")
    for system in systems:
        if system not in catalogue():
            raise ConfigError(f"there is no system {system!r}; {nearest(system, catalogue())}")
    return systems, settings_in(settings)


def describe(name: str) -> ModelConfig:
    """The model configuration of `name`, `name:key=value,...` or `name+name:key=value,...`.

    Raises ConfigError with the closest known name, or with the reason why systems cannot be joined.
    """
    systems, changes = parts_of(name)
    model, parts = _joined(name, systems)
    for change in changes:
        key, sign, text = change.partition("=")
        if not sign:
            raise ConfigError(f"{name}: write key=value, not {change!r}")
        value = read_value(text, f"{name}: {change}")
        name_today = ModelConfig.former_names.get(key, key)
        if name_today in _MODEL_KEYS:
            model[name_today] = value
        else:
            for part in _takers(name, key, parts):
                part.options[part.name_today(key.rpartition(".")[2])] = value
    for part in parts:
        options_of(part.kind, part.options)
    _check_preset(name, model)
    config = parse(ModelConfig, {**model, "mechanisms": [{part.kind: part.options} for part in parts]}, where=name)
    if "embedding" in model and config.backbone == "transformer" and config.embedding != config.d_model:
        raise ConfigError(f"{name}: embedding: a Transformer's is d_model, {config.d_model}; leave it out")
    return config


_MODEL_KEYS = tuple(key for key in ModelConfig.model_fields if key != "mechanisms")


class _Part(NamedTuple):
    """A mechanism of a description, and the system of the catalogue it comes from."""

    system: str
    kind: str
    options: dict[str, Any]

    @property
    def known(self) -> list[str]:
        """The names of the mechanism's options."""
        return list(MECHANISMS[self.kind].Options.model_fields)

    def name_today(self, option: str) -> str:
        """The name of an option that is given by this name or by a former one."""
        return MECHANISMS[self.kind].Options.former_names.get(option, option)


def _joined(name: str, systems: Sequence[str]) -> tuple[dict[str, Any], list[_Part]]:
    """The joint model settings of systems and their mechanisms in order; the first system decides the backbone."""
    model: dict[str, Any] = {"backbone": "transformer", **_of_model(systems[0])}
    parts = _mechanisms_of(systems[0])
    for system in systems[1:]:
        settings, mechanisms = _of_model(system), _mechanisms_of(system)
        if settings.get("backbone", model["backbone"]) != model["backbone"]:
            raise ConfigError(
                f"{name}: {systems[0]} is on backbone {model['backbone']} and {system} on {settings['backbone']}; the "
                f"first names the backbone: begin with {system}, or leave one of the two out"
            )
        for key in settings:
            if model.get(key, settings[key]) != settings[key]:
                raise ConfigError(
                    f"{name}: {system} has {key}={settings[key]}, one before it {model[key]}; leave one out"
                )
        for part in mechanisms:
            if twice := next((earlier for earlier in parts if earlier.kind == part.kind), None):
                raise ConfigError(f"{name}: {twice.system} and {system} both have {part.kind}; leave one of them out")
        if not mechanisms and settings.items() <= model.items():
            raise ConfigError(f"{name}: {system} adds nothing to {systems[0]}; leave it out")
        model |= settings
        parts += mechanisms
    return model, parts


def _of_model(system: str) -> dict[str, Any]:
    model = ModelConfig.by_current_names(SYSTEMS[system].model)
    return {key: value for key, value in model.items() if key != "mechanisms"}


def _mechanisms_of(system: str) -> list[_Part]:
    entries = SYSTEMS[system].model.get("mechanisms", ())
    return [_Part(system, kind, dict(options)) for entry in entries for kind, options in entry.items()]


def _takers(name: str, key: str, parts: Sequence[_Part]) -> list[_Part]:
    """The mechanisms with option `key`: all of one system that have it, or with MECHANISM.OPTION one mechanism."""
    if key == "mechanisms":
        raise ConfigError(f"{name}: mechanisms come with systems; join some by +, as in pfrnn-loss+future-cost-2")
    kind, dot, option = key.rpartition(".")
    takers = [part for part in parts if kind in ("", part.kind) and part.name_today(option) in part.known]
    if not takers:
        known = [
            f"{part.kind}.{known_option}" if dot else known_option for part in parts for known_option in part.known
        ]
        raise ConfigError(
            f"{name}: no part of this system has an option {key!r}; {nearest(key, [*_MODEL_KEYS, *known])}"
        )
    if len({part.system for part in takers}) > 1:
        choices = " or ".join(f"{part.kind}.{option}=..." for part in takers)
        raise ConfigError(f"{name}: several parts have an option {option!r}; say which one is meant: {choices}")
    return takers


def _check_preset(name: str, model: Mapping[str, Any]) -> None:
    backbone, preset = model["backbone"], model.get("preset")
    preset_backbone = PRESETS.get(preset, {}).get("backbone", backbone) if isinstance(preset, str) else backbone
    if preset_backbone != backbone:
        raise ConfigError(
            f"{name}: preset {preset} is of backbone {preset_backbone}; give backbone={preset_backbone} too, or "
            "another one"
        )


def options_of(kind: str, given: Mapping[str, Any]) -> Options:
    """Validate the options of a mechanism; raises ConfigError for unknown ones."""
    return parse(MECHANISMS[kind].Options, given, where=f"mechanisms.{kind}")
