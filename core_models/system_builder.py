"""Build a system from a name or a configuration, and count its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from core_models.backbones.foreign import ForeignEncoderDecoder
from core_models.backbones.foreign_causal import ForeignDecoder
from core_models.backbones.rnnsearch import RNNSearch
from core_models.backbones.transformer import Transformer
from core_models.config import ModelConfig
from core_models.interface.mechanism import BackboneSpec, Mechanism
from core_models.mechanisms.gaussian_prior import GaussianPrior
from core_models.settings import ConfigError, nearest, parse
from core_models.system import System
from core_models.system_catalogue import MECHANISMS, plugged_in
from core_models.system_spec import describe, options_of

BACKBONES: dict[str, type[Transformer] | type[RNNSearch] | type[ForeignEncoderDecoder] | type[ForeignDecoder]] = {
    "transformer": Transformer,
    "rnnsearch": RNNSearch,
    "foreign": ForeignEncoderDecoder,
    "foreign_decoder": ForeignDecoder,
}


def build(
    model: str | Mapping[str, Any] | ModelConfig, source_words: int = 8000, target_words: int | None = None
) -> System:
    """Build a system from a catalogue name or a configuration, with newly initialized weights.

    source_words, target_words: sizes of the vocabularies. Raises ConfigError if mechanisms are incompatible.
    """
    config = (
        describe(model)
        if isinstance(model, str)
        else model
        if isinstance(model, ModelConfig)
        else parse(ModelConfig, model)
    )
    kind = BACKBONES[config.backbone]
    if issubclass(kind, (ForeignEncoderDecoder, ForeignDecoder)):
        raise ConfigError("a foreign model is opened from its folder, not built: workbench open hf PATH --as NAME")
    try:
        backbone: nn.Module = kind(config, source_words, target_words or source_words)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return System(config, backbone, _build_mechanisms(config, backbone.spec()))


def _build_mechanisms(config: ModelConfig, spec: BackboneSpec) -> dict[str, Mechanism]:
    """Build the mechanisms in order; raises ConfigError for incompatible ones."""
    plugged_in()
    built: dict[str, Mechanism] = {}
    for entry in config.mechanisms:
        kind, values = next(iter(entry.items()))
        if kind not in MECHANISMS:
            raise ConfigError(f"mechanisms: there is no {kind!r}; {nearest(kind, list(MECHANISMS))}")
        options = options_of(kind, values or {})
        try:
            mechanism = MECHANISMS[kind](spec, options)  # type: ignore[arg-type]
        except ConfigError as error:
            raise ConfigError(f"{kind} on {config.backbone}: {error}") from None
        _check_compatible(kind, mechanism, built, spec, config.backbone)
        built[kind] = mechanism
    return built


def _check_compatible(
    kind: str, mechanism: Mechanism, before: Mapping[str, Mechanism], spec: BackboneSpec, backbone: str
) -> None:
    lacking = [hook_point.name for hook_point in mechanism.hook_points if hook_point not in spec.hook_points]
    if lacking:
        raise ConfigError(f"{kind} needs the hook point {', '.join(lacking)}, which {backbone} does not have")
    if type(mechanism) in map(type, before.values()):
        raise ConfigError(f"{kind} is named twice; one system has one of it")
    for hook_point in mechanism.replaces:
        changed = [name for name, earlier in before.items() if hook_point in earlier.hook_points]
        if changed:
            both = hook_point in before[changed[0]].replaces
            raise ConfigError(
                f"{kind} replaces the stream at {hook_point.name}, which {changed[0]} has changed before; "
                + ("leave one of the two out" if both else f"put {kind} first")
            )


def parameters(system: System) -> dict[str, int]:
    """Parameter counts: total, and without embeddings and output matrix (papers print either).

    Output matrices of mechanisms' own are in both. The word numbers that `d2gpo:order=first` stores are in neither.
    """
    tables = {id(module.weight) for module in system.modules() if isinstance(module, nn.Embedding)}
    word_numbers = {id(module.nearest) for module in system.modules() if isinstance(module, GaussianPrior)}
    counted = {
        id(parameter): parameter.numel() for parameter in system.parameters() if id(parameter) not in word_numbers
    }
    return {
        "parameters": sum(counted.values()),
        "parameters_without_embeddings": sum(size for key, size in counted.items() if key not in tables),
    }
