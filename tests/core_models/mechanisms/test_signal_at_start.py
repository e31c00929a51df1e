"""What a mechanism puts into the stream can be heard from the first step, and the encoder learns as fast as without it.

Where a mechanism hands a layer norm vectors shorter than the norm's epsilon, its output is noise and nothing before it
gets a gradient: dynamic routing once had an encoder gradient of 3e-5 of the Transformer's. So every system of the
catalogue is held at initialisation, at the smallest and at the papers' size.
"""

import warnings
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from core_models.config import ModelConfig
from core_models.system import System
from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from core_models.system_spec import describe
from tests.core_models.laws import awkward_batch, backward, batch_of, random_sentences
from tests.kinds import sampled

pytestmark = pytest.mark.long

WORDS = 200
LEAST_SHARE = 0.01  # of a sum, that what is added must make
DEVIATIONS = (0.2, 3)  # of what replaces a stream, relative to what it replaced
GRADIENTS = (0.1, 10)  # of the first encoder layer, relative to the same backbone without mechanisms
AT_BASE = [
    "linear-combination",
    "dynamic-combination",
    "dynamic-routing",  # N = d = 512
    "em-routing",
    "head-aggregation:routing=simple",
    "biarn",
    "gdr-bow-bca",
    "clf-bow-bca",
    "attn-bow-bca",
    "future-cost-2",
    "coverage",
    "pfrnn-loss",
    "gdr-rnn",
    "qcn-reg",
    "document-transformer",
    "han",
    "san",
]
# Options under which capsules are few and wide, or added to a stream, or their layers have no final norm.
VARIANTS = [
    "dynamic-routing:capsules=1",
    "dynamic-routing:capsules=8",
    "dynamic-routing:residual=true",
    "dynamic-routing:squash=unit_slope",
    "dynamic-routing:norm=post",
    "dynamic-routing:normalize_mass=true,side=decoder",
    "em-routing:capsules=4,width_reduction=mean",
    "em-routing:capsules=1,width_reduction=mean",
    "em-routing:residual=true,norm=post",
    "head-aggregation:routing=simple,norm=post",
    "head-aggregation:layers=[],attentions=[encoder_self,decoder_self,decoder_cross]",
    "biarn:short_cut=false,norm=post",
    "biarn:recurrence=words",
    "qcn:norm=post",
    "gdr-bow-bca:variant=released",
]


def described(name: str, preset: str) -> ModelConfig:
    return describe(f"{name}{',' if ':' in name else ':'}preset={preset},dropout=0,attention_dropout=0")


def built(config: ModelConfig) -> System:
    torch.manual_seed(1)
    return build(config, WORDS)


def step(system: System) -> None:
    batch = batch_of(system, random_sentences([12, 20, 17, 9], 1, WORDS), random_sentences([14, 18, 15, 10], 2, WORDS))
    backward(system, batch)


def first_encoder_layer(system: System) -> torch.nn.Module:
    backbone = system.backbone
    if hasattr(backbone, "encoder"):
        return backbone.encoder[0]
    return backbone.forward_unit if hasattr(backbone, "forward_unit") else backbone.source_layers.encoder[0]


def gradient(system: System) -> float:
    """The norm of the first encoder layer's gradient in one training step."""
    step(system)
    parts = [parameter.grad.flatten() for parameter in first_encoder_layer(system).parameters()]
    return float(torch.cat(parts).norm())


@cache
def gradient_without(bare: str) -> float:
    return gradient(built(ModelConfig.model_validate_json(bare)))


class Heard:
    """Of every place that a mechanism changed in a pass: what came in, what left, whether that replaced it."""

    def __init__(self, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: dict[str, list[tuple[torch.Tensor, torch.Tensor, bool]]] = {}
        for name, mechanism in system.named_mechanisms.items():
            monkeypatch.setattr(mechanism, "at", self._watched(name, mechanism))

    def _watched(self, name, mechanism):
        at = mechanism.at

        def watched(place, x, view, own):
            left = at(place, x, view, own)
            if left is not x:
                where = f"{name} on {place.name}"
                # What stands in place of the stack's output may have added it itself.
                replaced = place in mechanism.replaces and not getattr(mechanism.options, "residual", False)
                self.changes.setdefault(where, []).append((x.detach(), left.detach(), replaced))
            return left

        return watched

    def faint(self) -> Iterator[str]:
        """What cannot be heard, or drowns what was there; a recurrence counts by its loudest step."""
        for where, changes in self.changes.items():
            if changes[0][2]:
                ratios = [float(left.std() / x.std()) for x, left, _ in changes]
                if not all(DEVIATIONS[0] <= ratio <= DEVIATIONS[1] for ratio in ratios):
                    yield f"{where}: deviation {min(ratios):.3g} to {max(ratios):.3g} of what it replaced"
            else:
                share = max(float((left - x).norm() / left.norm()) for x, left, _ in changes)
                if share < LEAST_SHARE:
                    yield f"{where}: {share:.2%} of the sum"


def assert_heard(name: str, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = described(name, preset)
    system = built(config)
    heard = Heard(system, monkeypatch)
    ratio = gradient(system) / gradient_without(config.model_copy(update={"mechanisms": ()}).model_dump_json())
    assert list(heard.faint()) == []
    assert GRADIENTS[0] <= ratio <= GRADIENTS[1]


@pytest.mark.parametrize("name", [*catalogue(), *VARIANTS])
def test_every_system_is_heard_at_preset_demo(name, monkeypatch):
    assert_heard(name, "demo", monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(AT_BASE, every=8))
@pytest.mark.slow
def test_every_mechanism_is_heard_at_preset_base(name, monkeypatch):
    assert_heard(name, "base", monkeypatch)


def test_the_law_hears_the_fault_it_is_for(monkeypatch):
    """Capsules as the paper leaves them: a ten thousandth of the stream, and an encoder that gets no gradient."""
    with pytest.raises(AssertionError, match="dynamic_routing on ENCODER_STACK_OUTPUT: deviation"):
        assert_heard("dynamic-routing:scale=none", "demo", monkeypatch)


@pytest.mark.parametrize("name", ["dynamic-routing", "em-routing", "qcn"])
def test_exact_zeros_stay_finite_forward_and_backward(name):
    """Votes that are all zero make capsules of length zero, which no root mean square may divide into NaN."""
    system = built(described(name, "tiny"))
    with torch.no_grad():
        for parameter_name, parameter in system.named_parameters():
            if ".vote." in parameter_name or parameter_name.endswith("query_capsules.transform"):
                parameter.zero_()
    batch = awkward_batch(system)
    backward(system, batch)
    found = {name: parameter.grad for name, parameter in system.named_parameters() if parameter.grad is not None}
    assert [name for name, one in found.items() if not torch.isfinite(one).all()] == []
    encoded = system.encode(batch)
    assert torch.isfinite(system(encoded, batch.target_in, batch.target_mask).main.vectors).all()


def test_wide_capsules_under_sums_warn_when_they_are_built():
    with pytest.warns(UserWarning, match=r"em_routing: sums over capsules of 32 numbers .* width_reduction=mean"):
        built(described("em-routing:capsules=4", "demo"))
    for name in ("em-routing", "em-routing:capsules=4,width_reduction=mean"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            built(described(name, "demo"))
