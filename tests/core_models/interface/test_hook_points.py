"""Every place of both backbones, held by the toy mechanism: called, traced, trained, and the laws kept; law 7."""

import itertools

import pytest
import torch

from core_models.backbones.rnnsearch import RNNSearch
from core_models.backbones.transformer import Transformer
from core_models.config import ModelConfig
from core_models.interface.mechanism import HookPoint
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.system_catalogue import MECHANISMS
from core_models.text.batches import collate
from core_models.traces import TraceWriter
from tests.core_models.laws import (
    WORDS,
    assert_company_changes_nothing,
    assert_finite_gradients,
    assert_stepping_is_forcing,
    awkward_batch,
    log_probs,
    random_sentences,
    random_system,
    training_terms,
)
from tests.kinds import sampled

pytestmark = pytest.mark.long


def model(backbone: str, *mechanisms: dict) -> ModelConfig:
    return ModelConfig(backbone=backbone, preset="tiny", dropout=0, attention_dropout=0, mechanisms=mechanisms)


OFFERED = [
    (kind.__name__.lower(), hook_point.name)
    for kind, name in ((Transformer, "transformer"), (RNNSearch, "rnnsearch"))
    for hook_point in sorted(
        kind(model(name), WORDS, WORDS).spec().hook_points, key=lambda hook_point: hook_point.value
    )
]
LACKING = [
    (backbone, hook_point.name)
    for backbone in ("transformer", "rnnsearch")
    for hook_point in HookPoint
    if (backbone, hook_point.name) not in OFFERED
]
held = pytest.mark.parametrize(("backbone", "hook_point"), OFFERED)


def furnished(backbone: str, hook_point: str, **options):
    return random_system(model(backbone, {"toy": {"hook_point": hook_point, **options}}))


def test_each_backbone_offers_what_the_design_says():
    attention = {"BEFORE_ATTENTION", "ENERGY", "TRANSITION", "AFTER_ATTENTION"}
    hook_points = {
        backbone: {hook_point for name, hook_point in OFFERED if name == backbone}
        for backbone in ("transformer", "rnnsearch")
    }
    assert hook_points["transformer"] == {hook_point.name for hook_point in HookPoint} - attention
    assert hook_points["rnnsearch"] == attention | {"ENCODER_STACK_OUTPUT", "READOUT", "OUTPUT"}


@held
def test_the_mechanism_is_called_and_changes_the_scores(toy, backbone, hook_point):
    system = furnished(backbone, hook_point)
    bare = build(model(backbone), WORDS).double().eval()
    bare.load_state_dict({name: value for name, value in system.state_dict().items() if name.startswith("backbone.")})
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    assert (log_probs(system, batch) - log_probs(bare, batch)).abs().amax((0, 2))[:4].min() > 1e-9


@held
def test_laws_1_2_and_4_hold_at_every_place(toy, backbone, hook_point):
    system = furnished(backbone, hook_point)
    assert_stepping_is_forcing(system, steps=12)
    assert_company_changes_nothing(system)
    assert_finite_gradients(system, awkward_batch())


@held
def test_the_mechanism_is_in_the_trace_and_in_the_losses(toy, backbone, hook_point):
    system = furnished(backbone, hook_point)
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    writer = TraceWriter(["toy.*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    level = writer.sentences({"source": [5, 3], "target": [6, 4]})[0]["toy.level"]
    axis = "source" if hook_point.startswith("ENCODER") else "target"
    assert (level.axes, level.values.shape) == ((axis,), (5 if axis == "source" else 6,))
    terms = training_terms(system, batch)
    assert set(terms) == {"main", "toy", "toy_level"}
    torch.testing.assert_close(terms["toy_level"][0].item(), 0.1 * float(level.values.sum()), rtol=1e-5, atol=0)
    double = training_terms(furnished(backbone, hook_point, weight=0.2), batch)
    for term in ("toy", "toy_level"):
        torch.testing.assert_close(double[term], 2 * terms[term])
    system.zero_grad()
    sum(term.sum() for term in terms.values()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in system.mechanisms["toy"].parameters())


@pytest.mark.parametrize(("backbone", "hook_point"), LACKING)
def test_a_place_the_backbone_lacks_is_refused_by_name(toy, backbone, hook_point):
    with pytest.raises(ConfigError, match=f"toy needs the hook point {hook_point}, which {backbone} does not have"):
        build(model(backbone, {"toy": {"hook_point": hook_point}}), WORDS)


def test_a_recurrence_remembers_every_earlier_position(toy):
    """The level at AFTER_ATTENTION halves what came before and adds its own: by the trace, not by the code."""
    system = furnished("rnnsearch", "AFTER_ATTENTION")
    batch = collate(random_sentences([3], 1), random_sentences([4], 2))
    writer = TraceWriter(["toy.level"])
    with torch.no_grad():
        forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    own = forced.active.states["toy"]
    torch.testing.assert_close(own.before["level"], torch.nn.functional.pad(own.after["level"], (1, 0))[:, :-1])
    assert (own.after["level"] >= own.before["level"] / 2).all()


def refusal(config: ModelConfig) -> str | None:
    try:
        build(config, WORDS)
    except ConfigError as error:
        return str(error)
    return None


PAIRS = list(itertools.product(["transformer", "rnnsearch"], itertools.product([*MECHANISMS, "toy"], repeat=2)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("backbone", "pair"),
    sampled(PAIRS, every=6),
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_every_pair_works_or_is_refused(toy, backbone, pair):
    """Law 7. A pair that builds trains one finite step and keeps laws 1 and 2; one that does not says why."""
    options = {
        "future_cost": {"model": 2},
        "guided_capsules": {"losses": ["bow", "bca"], "lambda_2": 1e-3},  # squares are large where weights are random
        "past_future_layers": {"losses": ["past", "future"]},
        "selective_attention": {"context_sentences": 3},  # as far as the others read
        "toy": {"hook_point": "READOUT"},
    }
    config = model(backbone, *({name: options.get(name, {})} for name in pair))
    if reason := refusal(config):
        assert any(name in reason for name in pair)
        assert set(pair) != {"future_cost", "toy"}  # nothing speaks against these two, in either order
        return
    system = random_system(config)
    assert_finite_gradients(system, awkward_batch(system))
    torch.optim.SGD(system.parameters(), 1e-2).step()
    assert_stepping_is_forcing(system, steps=6)
    assert_company_changes_nothing(system)


def test_one_mechanism_twice_is_refused(toy):
    with pytest.raises(ConfigError, match="toy is named twice"):
        build(model("transformer", {"toy": {}}, {"toy": {"hook_point": "READOUT"}}), WORDS)


def test_a_mechanism_that_replaces_what_another_changed_is_refused(toy, monkeypatch):
    class Replacing(MECHANISMS["toy"]):
        replaces = (HookPoint.READOUT,)

    monkeypatch.setitem(MECHANISMS, "replacing", Replacing)
    with pytest.raises(ConfigError, match="replacing replaces the stream at READOUT, which toy has changed before"):
        build(model("transformer", {"toy": {"hook_point": "READOUT"}}, {"replacing": {"hook_point": "READOUT"}}), WORDS)


def test_what_is_not_shown_or_kept_is_named(toy):
    """A view's missing field and a state's missing tensor say what there is."""
    system = furnished("rnnsearch", "READOUT")
    batch = collate(random_sentences([3], 1), random_sentences([4], 2))
    forced = system(system.encode(batch), batch.target_in, batch.target_mask)
    with pytest.raises(AttributeError, match=r"the decoder has no 'layer' at this hook point; it has: mask, words"):
        _ = forced.view.layer
    with pytest.raises(KeyError, match="no tensor named 'plan'; there are: none"):
        _ = forced.active.states["toy"].sentence["plan"]
