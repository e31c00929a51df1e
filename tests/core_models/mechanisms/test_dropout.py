"""The dropout that mechanisms have of their own, by the backbone's two probabilities."""

import pytest
import torch

from core_models.layers.dropout import Dropout
from core_models.system_builder import build
from tests.core_models.laws import WORDS, batch_of, random_sentences, training_terms

# What the paths of each mechanism drop: numbers, by `dropout`; shares of attention, by `attention_dropout`.
OWN = {
    "biarn": ("dropout", "attention_dropout"),
    "document-transformer": ("dropout", "attention_dropout"),
    "han-encoder": ("dropout", "attention_dropout"),
    "han-decoder": ("dropout", "attention_dropout"),
    "qcn": ("dropout", "attention_dropout"),
    "san-encoder": ("dropout",),
    "san": ("dropout",),
    "gdr": ("dropout",),
    "gdr:combination=gate": ("dropout",),
    "gdr-rnn": ("dropout",),
    "em-routing": (),
    "future-cost-2": (),
    "head-aggregation": (),
    "pfrnn-loss": (),
}


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout"])
@pytest.mark.parametrize("name", OWN)
def test_a_mechanism_drops_with_the_backbones_probability_what_it_drops_and_nothing_else(name, kind):
    """The backbone itself drops nothing here: two passes differ by what the mechanism drops."""
    settings = {"dropout": 0, "attention_dropout": 0, kind: 0.5}
    described = ",".join(f"{key}={value}" for key, value in settings.items())
    torch.manual_seed(1)
    system = build(f"{name}{',' if ':' in name else ':'}preset=tiny,{described}", WORDS).double()
    for module in system.backbone.modules():
        if isinstance(module, Dropout):
            module.probability = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
    batch = batch_of(system, random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    passes = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        passes.append(torch.cat([term.flatten() for term in training_terms(system, batch).values()]))
    assert torch.equal(*passes) == (kind not in OWN[name])
