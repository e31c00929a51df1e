"""The catalogue: every named system of the papers as a configuration, and `build`, which makes a system of one.

`name:key=value,key=[value,value]` changes a system: a key of the model (preset, norm, backbone, ...) or an option of
the mechanism that has it. `name+name:...` joins the mechanisms of systems in this order, on the backbone of the first;
an option that several of them have is said as `mechanism.option=value`. To add a mechanism, register its class in
MECHANISMS and a system in SYSTEMS; another package does so by entry points of the groups nmt_workbench.mechanisms (a
class) and nmt_workbench.systems (an Entry).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import nn

from core_models.assembly import System
from core_models.backbones.rnnsearch import RNNSearch
from core_models.backbones.transformer import Transformer
from core_models.config import PRESETS, ModelConfig
from core_models.mechanisms.base import Host, Mechanism, Options, Place
from core_models.mechanisms.capsule_regularisation import CapsuleRegularisation
from core_models.mechanisms.coverage import Coverage
from core_models.mechanisms.document_context import Concatenation
from core_models.mechanisms.document_encoder import DocumentEncoder
from core_models.mechanisms.future_cost import FutureCost
from core_models.mechanisms.guided_capsules import GuidedCapsules
from core_models.mechanisms.hierarchical_attention import HierarchicalAttention
from core_models.mechanisms.layer_aggregation import DynamicCombination, LinearCombination
from core_models.mechanisms.layer_routing import DynamicRouting, EMRouting
from core_models.mechanisms.past_future_layers import PastFutureLayers
from core_models.mechanisms.query_capsules import QueryCapsules
from core_models.mechanisms.selective_attention import SelectiveAttention
from core_models.plugins import Plugged, class_of, join
from core_models.settings import ConfigError, nearest, parse, read_value, settings_in

BACKBONES: dict[str, type[Transformer] | type[RNNSearch]] = {"transformer": Transformer, "rnnsearch": RNNSearch}
MECHANISMS: dict[str, type[Mechanism]] = {
    "linear_combination": LinearCombination,
    "dynamic_combination": DynamicCombination,
    "dynamic_routing": DynamicRouting,
    "em_routing": EMRouting,
    "guided_capsules": GuidedCapsules,
    "future_cost": FutureCost,
    "past_future_layers": PastFutureLayers,
    "coverage": Coverage,
    "concatenation": Concatenation,
    "query_capsules": QueryCapsules,
    "capsule_regularisation": CapsuleRegularisation,
    "document_encoder": DocumentEncoder,
    "hierarchical_attention": HierarchicalAttention,
    "selective_attention": SelectiveAttention,
}


@dataclass(frozen=True)
class Entry:
    """A named system: what it is, where it comes from, and the model configuration that makes it."""

    title: str
    paper: str
    model: Mapping[str, Any] = field(default_factory=dict)


def _guided(title: str, where: str = "Table 1", **options: Any) -> Entry:
    return Entry(title, f"Zheng 2019, {where}", {"mechanisms": [{"guided_capsules": options}]})


def _document(title: str, paper: str, *mechanisms: str, **options: Any) -> Entry:
    return Entry(title, paper, {"mechanisms": [{mechanism: dict(options)} for mechanism in mechanisms]})


def _recurrent(title: str, paper: str = "Zheng 2018, Table 2", **model: Any) -> Entry:
    return Entry(title, paper, {"backbone": "rnnsearch", **model})


def _past_future(title: str, *layers: str, loss: bool = False, **options: Any) -> Entry:
    chosen = {"layers": list(layers), **options, **({"losses": list(layers)} if loss else {})}
    return _recurrent(title, mechanisms=[{"past_future_layers": chosen}])


SYSTEMS: dict[str, Entry] = {
    "transformer": Entry("Transformer", "Vaswani 2017", {}),
    "future-cost-1": Entry(
        "Future cost, Model I", "Duan 2020, section 4.1", {"mechanisms": [{"future_cost": {"model": 1}}]}
    ),
    "future-cost-2": Entry(
        "Future cost, Model II", "Duan 2020, section 4.2", {"mechanisms": [{"future_cost": {"model": 2}}]}
    ),
    "linear-combination": Entry(
        "Linear combination of layers", "Dou 2019, Eq. 3; Dou 2018", {"mechanisms": [{"linear_combination": {}}]}
    ),
    "dynamic-combination": Entry(
        "Dynamic combination of layers", "Dou 2019, Eq. 4", {"mechanisms": [{"dynamic_combination": {}}]}
    ),
    "dynamic-routing": Entry(
        "Dynamic routing of layers", "Dou 2019, Algorithm 1", {"mechanisms": [{"dynamic_routing": {}}]}
    ),
    "em-routing": Entry("EM routing of layers", "Dou 2019, Algorithm 2", {"mechanisms": [{"em_routing": {}}]}),
    "gdr": _guided("Guided dynamic routing"),
    "gdr-bow": _guided("GDR, bags of words", losses=["bow"]),
    "gdr-bca": _guided("GDR, content agreement", losses=["bca"]),
    "gdr-bow-bca": _guided("GDR, both losses", losses=["bow", "bca"]),
    "gdr-bow-bca-no-redundant": _guided("GDR, both, no redundant", losses=["bow", "bca"], redundant=False),
    "clf-bow-bca": _guided("CLF, both losses", "Figure 6", routing="classifier", losses=["bow", "bca"]),
    "attn-bow-bca": _guided("ATTN, both losses", "Figure 6", routing="attention", losses=["bow", "bca"]),
    "rnnsearch": _recurrent("RNNSearch", "Bahdanau 2015; conditional GRU"),
    "rnnsearch-2dec": _recurrent("RNNSearch, two decoder layers", deep_layers=1),
    "rnnsearch-3dec": _recurrent("RNNSearch, three decoder layers", deep_layers=2),
    "coverage": _recurrent("Coverage", "Tu 2016", mechanisms=[{"coverage": {}}]),
    "frnn-gru": _past_future("FUTURE layer, GRU", "future", future_unit="gru"),
    "frnn-gru-o": _past_future("FUTURE layer, GRU-o", "future", future_unit="gru-o"),
    "frnn-gru-i": _past_future("FUTURE layer, GRU-i", "future"),
    "frnn-gru-i-loss": _past_future("FUTURE layer, GRU-i, loss", "future", loss=True),
    "prnn": _past_future("PAST layer", "past"),
    "prnn-loss": _past_future("PAST layer, loss", "past", loss=True),
    "pfrnn": _past_future("PAST and FUTURE layers", "past", "future"),
    "pfrnn-loss": _past_future("PAST and FUTURE layers, losses", "past", "future", loss=True),
    "gdr-rnn": _recurrent(
        "GDR on RNNSearch, both losses",
        "Zheng 2019, Table 1",
        mechanisms=[{"guided_capsules": {"losses": ["bow", "bca"], "combination": "linear"}}],
    ),
    "transformer-reg": _document("Capsules of both sides correlate", "Yang 2019, Eq. 11", "capsule_regularisation"),
    "qcn": _document("Query-guided capsules", "Yang 2019, Algorithm 1", "query_capsules"),
    "qcn-reg": _document(
        "Query-guided capsules, correlated", "Yang 2019, Table 2", "query_capsules", "capsule_regularisation"
    ),
    "document-transformer": _document("Encoder of the context", "Zhang 2018", "document_encoder"),
    "han-encoder": _document("HAN, sources before", "Miculicich 2018", "hierarchical_attention", side="encoder"),
    "han-decoder": _document("HAN, outputs before", "Miculicich 2018", "hierarchical_attention", side="decoder"),
    "han": _document("HAN, both", "Miculicich 2018", "hierarchical_attention"),
    "san-encoder": _document("Selective attention, sources", "Maruf 2019", "selective_attention", side="encoder"),
    "san": _document("Selective attention, both", "Maruf 2019", "selective_attention"),
    "concatenation": _document("Sentences before as source", "Tiedemann and Scherrer 2017", "concatenation"),
}


def plugged_in() -> list[Plugged]:
    """Mechanisms and systems of other packages, put into MECHANISMS and SYSTEMS when this is first asked."""
    return [*join("mechanisms", MECHANISMS, class_of(Mechanism)), *join("systems", SYSTEMS, _unsuited)]


def _unsuited(value: Any) -> str:
    if not isinstance(value, Entry):
        return "is no Entry of core_models.systems"
    named = [kind for mechanism in value.model.get("mechanisms", ()) for kind in mechanism]
    missing = [kind for kind in named if kind not in MECHANISMS]
    return f"has the mechanism {missing[0]!r}, which is not here" if missing else ""


def catalogue() -> list[str]:
    """The names of all systems."""
    plugged_in()
    return list(SYSTEMS)


def parts_of(description: str) -> tuple[list[str], list[str]]:
    """The systems that `name:key=value,...` or `name+name:...` names, and its settings, `key=value` each.

    Raises ConfigError with the nearest known name for a system that is none.
    """
    names, _, settings = description.partition(":")
    systems = names.split("+")
    for system in systems:
        if system not in catalogue():
            raise ConfigError(f"there is no system {system!r}; {nearest(system, catalogue())}")
    return systems, settings_in(settings)


def describe(name: str) -> ModelConfig:
    """The model configuration of `name`, `name:key=value,...` or `name+name:key=value,...`.

    Raises ConfigError with the nearest known name, or with the reason why systems cannot be joined.
    """
    systems, changes = parts_of(name)
    model, parts = _joined(name, systems)
    for change in changes:
        key, sign, text = change.partition("=")
        if not sign:
            raise ConfigError(f"{name}: write key=value, not {change!r}")
        value = read_value(text, f"{name}: {change}")
        if key in _MODEL_KEYS:
            model[key] = value
        else:
            for part in _takers(name, key, parts):
                part.options[key.rpartition(".")[2]] = value
    for part in parts:
        _options(part.kind, part.options)
    _check_preset(name, model)
    return parse(ModelConfig, {**model, "mechanisms": [{part.kind: part.options} for part in parts]}, where=name)


_MODEL_KEYS = tuple(key for key in ModelConfig.model_fields if key != "mechanisms")


class _Part(NamedTuple):
    """A mechanism of a description, and the system of the catalogue that brings it."""

    system: str
    kind: str
    options: dict[str, Any]

    @property
    def known(self) -> list[str]:
        """The options that it could have."""
        return list(MECHANISMS[self.kind].Options.model_fields)


def _joined(name: str, systems: Sequence[str]) -> tuple[dict[str, Any], list[_Part]]:
    """What systems say of the model, taken together, and their mechanisms in order; the first names the backbone."""
    model: dict[str, Any] = {"backbone": "transformer", **_of_model(systems[0])}
    parts = _mechanisms_of(systems[0])
    for system in systems[1:]:
        said, brought = _of_model(system), _mechanisms_of(system)
        if said.get("backbone", model["backbone"]) != model["backbone"]:
            raise ConfigError(
                f"{name}: {systems[0]} is on backbone {model['backbone']} and {system} on {said['backbone']}; the "
                f"first names the backbone: begin with {system}, or leave one of the two out"
            )
        for key in said:
            if model.get(key, said[key]) != said[key]:
                raise ConfigError(f"{name}: {system} has {key}={said[key]}, one before it {model[key]}; leave one out")
        for part in brought:
            if twice := next((earlier for earlier in parts if earlier.kind == part.kind), None):
                raise ConfigError(f"{name}: {twice.system} and {system} both have {part.kind}; leave one of them out")
        if not brought and said.items() <= model.items():
            raise ConfigError(f"{name}: {system} adds nothing to {systems[0]}; leave it out")
        model |= said
        parts += brought
    return model, parts


def _of_model(system: str) -> dict[str, Any]:
    return {key: value for key, value in SYSTEMS[system].model.items() if key != "mechanisms"}


def _mechanisms_of(system: str) -> list[_Part]:
    entries = SYSTEMS[system].model.get("mechanisms", ())
    return [_Part(system, kind, dict(options)) for entry in entries for kind, options in entry.items()]


def _takers(name: str, key: str, parts: Sequence[_Part]) -> list[_Part]:
    """Whose option `key` is: of all mechanisms of one system that have it, or as MECHANISM.OPTION of one mechanism."""
    if key == "mechanisms":
        raise ConfigError(f"{name}: mechanisms come with systems; join some by +, as in pfrnn-loss+future-cost-2")
    kind, dot, option = key.rpartition(".")
    takers = [part for part in parts if kind in ("", part.kind) and option in part.known]
    if not takers:
        known = [f"{part.kind}.{own}" if dot else own for part in parts for own in part.known]
        raise ConfigError(
            f"{name}: no part of this system has an option {key!r}; {nearest(key, [*_MODEL_KEYS, *known])}"
        )
    if len({part.system for part in takers}) > 1:
        said = " or ".join(f"{part.kind}.{option}=..." for part in takers)
        raise ConfigError(f"{name}: several parts have an option {option!r}; say which one is meant: {said}")
    return takers


def _check_preset(name: str, model: Mapping[str, Any]) -> None:
    own, preset = model["backbone"], model.get("preset")
    needed = PRESETS.get(preset, {}).get("backbone", own) if isinstance(preset, str) else own
    if needed != own:
        raise ConfigError(
            f"{name}: preset {preset} is of backbone {needed}; give backbone={needed} too, or another one"
        )


def build(
    model: str | Mapping[str, Any] | ModelConfig, source_words: int = 8000, target_words: int | None = None
) -> System:
    """Build a system from a catalogue name or a configuration; weights are freshly initialised.

    source_words, target_words: sizes of the vocabularies. Raises ConfigError where mechanisms cannot stand together.
    """
    config = (
        describe(model)
        if isinstance(model, str)
        else model
        if isinstance(model, ModelConfig)
        else parse(ModelConfig, model)
    )
    try:
        backbone: nn.Module = BACKBONES[config.backbone](config, source_words, target_words or source_words)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return System(config, backbone, _furnish(config, backbone.host()))


def _options(kind: str, given: Mapping[str, Any]) -> Options:
    return parse(MECHANISMS[kind].Options, given, where=f"mechanisms.{kind}")


def _furnish(config: ModelConfig, host: Host) -> dict[str, Mechanism]:
    """Build the mechanisms in order and refuse what cannot work."""
    plugged_in()
    built: dict[str, Mechanism] = {}
    for entry in config.mechanisms:
        kind, given = next(iter(entry.items()))
        if kind not in MECHANISMS:
            raise ConfigError(f"mechanisms: there is no {kind!r}; {nearest(kind, list(MECHANISMS))}")
        options = _options(kind, given or {})
        try:
            mechanism = MECHANISMS[kind](host, options)  # type: ignore[arg-type]
        except ConfigError as error:
            raise ConfigError(f"{kind} on {config.backbone}: {error}") from None
        _refuse(kind, mechanism, built, host, config.backbone)
        count = sum(1 for name in built if name.partition("-")[0] == kind)
        built[kind if not count else f"{kind}-{count + 1}"] = mechanism
    return built


def _refuse(kind: str, mechanism: Mechanism, before: Mapping[str, Mechanism], host: Host, backbone: str) -> None:
    lacking = [place.name for place in mechanism.places if place not in host.places]
    if lacking:
        raise ConfigError(f"{kind} stands on {', '.join(lacking)}, which {backbone} does not offer")
    kinds = [type(earlier) for earlier in before.values()]
    if type(mechanism) in kinds and not getattr(mechanism, "repeats", False):
        raise ConfigError(f"{kind} is named twice; one system has one of it")
    for place in mechanism.replaces:
        changed = [name for name, earlier in before.items() if place in earlier.places]
        if changed:
            both = place in before[changed[0]].replaces
            raise ConfigError(
                f"{kind} replaces what stands on {place.name}, which {changed[0]} has changed before; "
                + ("leave one of the two out" if both else f"put {kind} first")
            )


def parameters(system: System) -> dict[str, int]:
    """Parameter counts: total, and without embeddings and output matrix (papers print either)."""
    tables = {id(module.weight) for module in system.modules() if isinstance(module, nn.Embedding)}
    counted = {id(parameter): parameter.numel() for parameter in system.parameters()}
    return {
        "parameters": sum(counted.values()),
        "parameters_without_embeddings": sum(size for key, size in counted.items() if key not in tables),
    }


__all__ = [
    "MECHANISMS",
    "SYSTEMS",
    "Entry",
    "Place",
    "build",
    "catalogue",
    "describe",
    "parameters",
    "parts_of",
    "plugged_in",
]
