"""The catalogue: every named system of the papers as a configuration of the model, and every mechanism.

To add a mechanism, register its class in MECHANISMS and a system in SYSTEMS; another package does so by entry points of
the groups nmt_workbench.mechanisms (a class) and nmt_workbench.systems (an Entry). `core_models.system_spec` reads
what changes or joins systems, `core_models.system_builder` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core_models.interface.mechanism import Mechanism
from core_models.mechanisms.capsule_regularization import CapsuleRegularization
from core_models.mechanisms.coverage import Coverage
from core_models.mechanisms.document_context import Concatenation
from core_models.mechanisms.document_encoder import DocumentEncoder
from core_models.mechanisms.future_cost import FutureCost
from core_models.mechanisms.gaussian_prior import GaussianPrior
from core_models.mechanisms.guided_capsules import GuidedCapsules
from core_models.mechanisms.head_aggregation import HeadAggregation
from core_models.mechanisms.hierarchical_attention import HierarchicalAttention
from core_models.mechanisms.layer_aggregation import DynamicCombination, LinearCombination
from core_models.mechanisms.layer_routing import DynamicRouting, EMRouting
from core_models.mechanisms.past_future_layers import PastFutureLayers
from core_models.mechanisms.query_capsules import QueryCapsules
from core_models.mechanisms.recurrence_encoder import RecurrenceEncoder
from core_models.mechanisms.selective_attention import SelectiveAttention
from core_models.plugins import Plugged, class_of, join

MECHANISMS: dict[str, type[Mechanism]] = {
    "linear_combination": LinearCombination,
    "dynamic_combination": DynamicCombination,
    "dynamic_routing": DynamicRouting,
    "em_routing": EMRouting,
    "head_aggregation": HeadAggregation,
    "recurrence_encoder": RecurrenceEncoder,
    "guided_capsules": GuidedCapsules,
    "future_cost": FutureCost,
    "gaussian_prior": GaussianPrior,
    "past_future_layers": PastFutureLayers,
    "coverage": Coverage,
    "concatenation": Concatenation,
    "query_capsules": QueryCapsules,
    "capsule_regularisation": CapsuleRegularization,
    "document_encoder": DocumentEncoder,
    "hierarchical_attention": HierarchicalAttention,
    "selective_attention": SelectiveAttention,
}


@dataclass(frozen=True)
class Entry:
    """A named system: its title, its paper, and its model configuration."""

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
    layer_options = {"layers": list(layers), **options, **({"losses": list(layers)} if loss else {})}
    return _recurrent(title, mechanisms=[{"past_future_layers": layer_options}])


SYSTEMS: dict[str, Entry] = {
    "transformer": Entry("Transformer", "Vaswani 2017", {}),
    "future-cost-1": Entry(
        "Future cost, Model I", "Duan 2020, section 4.1", {"mechanisms": [{"future_cost": {"model": 1}}]}
    ),
    "future-cost-2": Entry(
        "Future cost, Model II", "Duan 2020, section 4.2", {"mechanisms": [{"future_cost": {"model": 2}}]}
    ),
    "d2gpo": Entry("Gaussian prior over words", "Li 2020", {"mechanisms": [{"gaussian_prior": {}}]}),
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
    "head-aggregation": Entry("EM routing of heads", "Li 2019", {"mechanisms": [{"head_aggregation": {}}]}),
    "biarn": Entry("Recurrence encoder, attentive", "Hao 2019", {"mechanisms": [{"recurrence_encoder": {}}]}),
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
    """Mechanisms and systems of other packages, added to MECHANISMS and SYSTEMS on the first call."""
    return [*join("mechanisms", MECHANISMS, class_of(Mechanism)), *join("systems", SYSTEMS, _unsuited)]


def _unsuited(value: Any) -> str:
    if not isinstance(value, Entry):
        return "is no Entry of core_models.system_catalogue"
    named = [kind for mechanism in value.model.get("mechanisms", ()) for kind in mechanism]
    missing = [kind for kind in named if kind not in MECHANISMS]
    return f"has the mechanism {missing[0]!r}, which is not here" if missing else ""


def catalogue() -> list[str]:
    """The names of all systems."""
    plugged_in()
    return list(SYSTEMS)
