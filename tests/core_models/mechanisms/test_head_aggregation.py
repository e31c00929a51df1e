"""Aggregation of heads: whole systems beside NumPy, sizes beside the paper's, what is left out, and the trace."""

import warnings

import numpy as np
import pytest
import torch

from core_models.checkpoint import load_weights, write_weights
from core_models.context_states import context_states
from core_models.interface.mechanism import HookPoint
from core_models.mechanisms.head_aggregation import HeadMaps
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.traces import TraceWriter
from tests.core_models.context_numpy import cases
from tests.core_models.laws import batch_of, exact, log_probs, random_sentences, random_system, training_terms
from tests.core_models.recurrent_numpy import sigmoid
from tests.core_models.routing.test_algorithms_numpy import by_expectation, by_simple_agreement
from tests.core_models.transformer_numpy import Reader, Transformer, array, heads

ALL = "attentions=[encoder_self,decoder_self,decoder_cross],layers=[]"


class Routed(Reader):
    """Li 2019: input capsules f_h, votes V = f_h W, and their routing, at every position by itself."""

    def __init__(self, mechanism) -> None:
        self.mechanism, self.told = mechanism, {}

    def aggregates(self, attention, layer):
        options = self.mechanism.options
        if attention not in options.attentions or (options.layers and layer + 1 not in options.layers):
            return None
        place = sorted(options.layers).index(layer + 1) if options.layers else layer
        module = self.mechanism.routed[attention][place]
        return lambda rows: self.rows(attention, layer, module, rows)

    def rows(self, attention, layer, module, rows):
        told = [self.position(module, joined) for joined in rows]
        self.told[attention, layer] = told
        return np.stack([capsules.ravel() for capsules, *_ in told])

    def position(self, module, joined):
        options, inputs, votes = self.mechanism.options, [], []
        for h, own in enumerate(heads(joined, len(module.vote.weight))):
            given = joined if options.inputs == "all" else own
            made = given @ array(module.transform.weight)[h]
            inputs.append(np.tanh(made) if options.activation == "tanh" else made)
            votes.append((inputs[-1] @ array(module.vote.weight)[h]).reshape(options.capsules or len(joined), -1))
        if options.routing == "simple":
            return by_simple_agreement(np.stack(votes), options.iterations)
        active = [sigmoid(one @ array(module.active)[h]) for h, one in enumerate(inputs)]
        temperatures = [options.inverse_temperature] * options.iterations
        betas, mean = (array(module.beta_a), array(module.beta_u)), options.width_reduction == "mean"
        return by_expectation(
            np.stack(votes), active, *betas, temperatures, options.variance_floor, False, False, mean
        )  # fmt: skip


NAMES = [
    "head-aggregation",
    "head-aggregation:routing=simple",
    f"head-aggregation:{ALL},capsules=8,width_reduction=mean",
    f"head-aggregation:{ALL},routing=simple,capsules=4,inputs=own,iterations=4",
    "head-aggregation:attentions=[decoder_cross],layers=[2],input_width=24,capsules=16,norm=post",
    "head-aggregation:attentions=[decoder_self],activation=none,iterations=1,inverse_temperature=0.3",
    "head-aggregation:variance_floor=0.1,inputs=own,input_width=5,layers=[2,1]",
]


def random_batch(system):
    return batch_of(system, random_sentences([5, 1, 0, 4, 7], 1), random_sentences([4, 0, 3, 6, 2], 2))


@pytest.mark.parametrize("name", NAMES)
def test_scores(name):
    """log P over the vocabulary at every position of every target."""
    system = random_system(f"{name}{',' if ':' in name else ':'}encoder_layers=2,decoder_layers=2")
    backbone, batch = Transformer(system), random_batch(system)
    found = log_probs(system, batch).detach().numpy()
    for row, case in enumerate(cases(batch)):
        wanted = backbone.log_probs(case.source, case.target, Routed(system.mechanisms["head_aggregation"]))
        np.testing.assert_allclose(found[row, : len(case.target)], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("routing", ["simple", "em"])
def test_the_trace_has_every_routed_layer_and_iteration(routing):
    system = random_system(
        f"head-aggregation:{ALL},routing={routing},capsules=16,iterations=4,encoder_layers=2,decoder_layers=3"
    )
    batch = random_batch(system)
    writer = TraceWriter(["head_aggregation.*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
    backbone = Transformer(system)
    for case, trace in zip(cases(batch), writer.sentences(lengths), strict=True):
        reader = Routed(system.mechanisms["head_aggregation"])
        backbone.log_probs(case.source, case.target, reader)
        for attention, layers in (("encoder_self", 2), ("decoder_self", 3), ("decoder_cross", 3)):
            position = "source" if attention == "encoder_self" else "target"
            told = [reader.told[attention, layer] for layer in range(layers)]
            assigned = trace[f"head_aggregation.{attention}.assignments"]
            assert assigned.axes == ("iteration", "layer", position, "head", "capsule")
            wanted = np.moveaxis(np.array([[one[1] for one in of_layer] for of_layer in told]), 2, 0)
            np.testing.assert_allclose(assigned.values, wanted, rtol=0, atol=1e-6)
            assigned.check("assignments", 1e-5)
            name = f"head_aggregation.{attention}.activations"
            assert (name in trace) == (routing == "em")
            if name in trace:
                assert trace[name].axes == ("layer", position, "capsule")
                wanted = [[one[2] for one in of_layer] for of_layer in told]
                np.testing.assert_allclose(trace[name].values, wanted, rtol=0, atol=1e-6)


def test_linear_is_the_transformer_to_the_last_bit():
    """Weights, scores and terms: nothing is drawn, nothing is left out."""
    linear, plain = random_system("head-aggregation:routing=linear"), random_system("transformer")
    parameters = dict(plain.named_parameters())
    assert [name for name, _ in linear.named_parameters()] == list(parameters)
    assert all(torch.equal(one, parameters[name]) for name, one in linear.named_parameters())
    batch = random_batch(plain)
    assert torch.equal(log_probs(linear, batch), log_probs(plain, batch))
    for name, term in training_terms(plain, batch).items():
        assert torch.equal(term, training_terms(linear, batch)[name])


def test_routed_attentions_have_no_output_map_and_all_others_keep_theirs(tmp_path):
    layers = "layers=[2],encoder_layers=2,decoder_layers=3"
    system = build(exact(f"head-aggregation:attentions=[encoder_self,decoder_cross],{layers}"), 19)
    backbone = system.backbone
    assert [block.attention.output is None for block in backbone.encoder] == [False, True]
    assert [block.cross.output is None for block in backbone.decoder] == [False, True, False]
    assert not any(block.attention.output is None for block in backbone.decoder)
    assert system.mechanisms["head_aggregation"].replaced_maps == [
        (HookPoint.ENCODER_HEADS, 1),
        (HookPoint.DECODER_CROSS_HEADS, 1),
    ]
    again = build(system.config, 19)
    write_weights(tmp_path / "weights.safetensors", system)
    load_weights(tmp_path / "weights.safetensors", again)
    assert all(torch.equal(*pair) for pair in zip(system.parameters(), again.parameters(), strict=True))


def test_context_sentences_are_encoded_with_routed_heads(monkeypatch):
    """A mechanism that replaces a part of the backbone stands there too when the backbone runs alone."""
    system = random_system("head-aggregation+han-encoder:encoder_layers=1")
    lines = random_sentences([3, 5], 8)
    batch = collate(lines, None, [[lines[0]]] * 2)
    mechanism = system.mechanisms["head_aggregation"]
    states = context_states(system.backbone, batch.context, False, {"head_aggregation": mechanism})
    wanted = Transformer(system).encode([*lines[0], 3], Routed(mechanism))
    np.testing.assert_allclose(states.memory[0, 0].numpy(), wanted, rtol=0, atol=1e-10)
    at, encoded = mechanism.at, []
    monkeypatch.setattr(mechanism, "at", lambda place, x, *rest: encoded.append(len(x)) or at(place, x, *rest))
    system.encode(batch)
    assert encoded == [2 * system.context.sentences, 2]  # the sentences before, then those themselves


def test_maps_of_own_and_of_shared_inputs():
    torch.manual_seed(1)
    module, own, shared = HeadMaps(3, 4, 5), torch.randn(2, 7, 3, 4), torch.randn(2, 7, 1, 4)
    for head in range(3):
        torch.testing.assert_close(module(own)[..., head, :], own[..., head, :] @ module.weight[head])
        torch.testing.assert_close(module(shared)[..., head, :], shared[..., 0, :] @ module.weight[head])


# What is added to the Transformer, in d^2 (but for vectors), at d = 512 with 8 heads and at d = 1024 with 16.
SQUARES = {
    "head-aggregation": (15, 31),
    "head-aggregation:routing=simple": (15, 31),
    "head-aggregation:layers=[],attentions=[encoder_self,decoder_cross]": (180, 372),
    "head-aggregation:inputs=own": (8, 16),
    "head-aggregation:inputs=own,input_width=64": (1 / 8, 1 / 16),
}
REPORTED = {"base": (88.0, 92.0), "big": (264, 297.0)}  # millions, without and with it: Dou 2019, Duan 2020


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize(("preset", "place", "width"), [("base", 0, 512), ("big", 1, 1024)])
def test_what_a_system_adds(name, preset, place, width):
    with torch.device("meta"):
        sizes = [
            sum(p.numel() for p in build(f"{one}{',' if ':' in one else ':'}preset={preset}", 100).parameters())
            for one in (name, "transformer")
        ]
    vectors = 20 * width * (12 if "layers=[]" in name else 1)
    assert sizes[0] - sizes[1] == pytest.approx(SQUARES[name][place] * width**2, abs=vectors)
    if name == "head-aggregation":
        without, with_it = REPORTED[preset]
        assert (sizes[0] - sizes[1]) / 1e6 == pytest.approx(with_it - without, rel=0.03)


@pytest.mark.parametrize("routing", ["simple", "em"])
def test_detached_routing_has_the_same_scores_and_other_gradients(routing):
    systems = [
        random_system(f"head-aggregation:routing={routing},capsules=16,detach={detach}") for detach in ("false", "true")
    ]
    batch = random_batch(systems[0])
    torch.testing.assert_close(*(log_probs(system, batch) for system in systems), rtol=0, atol=1e-12)
    found = []
    for system in systems:
        training_terms(system, batch)["main"].sum().backward()
        found.append(system.mechanisms["head_aggregation"].routed["encoder_self"][0].vote.weight.grad)
    assert (found[0] - found[1]).abs().max() > 1e-6 * found[0].abs().max()


def test_wide_capsules_under_sums_warn_when_they_are_built():
    with pytest.warns(UserWarning, match=r"head_aggregation: sums over capsules of 16 numbers .* width_reduction=mean"):
        build("head-aggregation:preset=tiny,capsules=4", 20)
    for options in ("capsules=4,width_reduction=mean", "capsules=4,routing=simple", "iterations=2"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            build(f"head-aggregation:preset=tiny,{options}", 20)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("capsules=7", "head_aggregation on transformer: capsules: 7 do not divide a vector of 64 numbers"),
        ("layers=[3]", "layers: the encoder has layers 1 to 2, not 3"),
        ("layers=[0]", "layers: the encoder has layers 1 to 2, not 0"),
        ("layers=[1,1]", "layers: one is named twice"),
        ("routing=simple,variance_floor=0.1", "variance_floor: does nothing while routing is simple"),
        ("routing=linear,iterations=2", "iterations: does nothing while routing is linear"),
        ("backbone=rnnsearch", "head_aggregation needs the hook point ENCODER_HEADS, which rnnsearch does not have"),
    ],
)
def test_what_cannot_be_is_refused(options, refusal):
    with pytest.raises(ConfigError, match=refusal):
        build(f"head-aggregation:preset=tiny,encoder_layers=2,{options}", 20)
