"""Layer aggregation: hand-worked combinations, sizes beside the paper's, routing as the equations write it."""

import pytest
import torch

from core_models.mechanisms.layer_aggregation import DrawnWeights, WeightedSum
from core_models.mechanisms.layer_routing import CapsuleVotes, LayerMaps, RoutingOptions
from core_models.routing.algorithms import dynamic_routing, squash
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.traces import TraceWriter
from tests.core_models.laws import random_sentences, random_system

LAYERS = torch.tensor([[1.0, 2.0], [3.0, -1.0]])  # [L, d]


@pytest.mark.parametrize(
    ("weight", "wanted"),
    [
        ([[1, 0.5], [0.5, 2]], [2.5, -1]),
        ([[[1, 1], [0, 1]], [[0, 1], [1, 0]]], [0, 6]),
    ],
    ids=["vectors", "matrices"],
)
def test_fixed_weights_by_hand(weight, wanted):
    module = WeightedSum(2, 2, matrices=len(torch.tensor(weight).shape) == 3)
    module.weight.data = torch.tensor(weight, dtype=torch.float32)
    torch.testing.assert_close(module(LAYERS), torch.tensor(wanted, dtype=torch.float32))


@pytest.mark.parametrize("matrices", [False, True])
def test_fixed_weights_begin_as_the_mean_of_the_layers(matrices):
    torch.testing.assert_close(WeightedSum(2, 2, matrices)(LAYERS), LAYERS.mean(0))


def test_drawn_weights_by_hand():
    """Hidden units [4, 1]; the weights of the two layers [4, 1] and [1, 4]."""
    module = DrawnWeights(2, 2, shared=True, hidden=2)
    module.hidden.weight.data = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    module.drawn.data = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0]])
    module.bias.data.zero_()
    torch.testing.assert_close(module(LAYERS), torch.tensor([7.0, -2.0]))


def test_drawn_weights_of_each_layer_are_a_network_each():
    torch.manual_seed(1)
    module, layers = DrawnWeights(3, 4, shared=False, hidden=5), torch.randn(2, 7, 3, 4)
    wanted = 0
    for layer in range(3):
        own = slice(5 * layer, 5 * (layer + 1))
        hidden = torch.relu(layers.flatten(-2) @ module.hidden.weight[own].T + module.hidden.bias[own])
        wanted = wanted + (hidden @ module.drawn[layer] + module.bias[layer]) * layers[..., layer, :]
    torch.testing.assert_close(module(layers), wanted)


@pytest.mark.parametrize("shared", [False, True])
def test_networks_that_draw_weights_begin_as_xavier_says_of_each_of_them(shared):
    """Counted over all three axes, layers would stand for inputs and the weights be too small by the root of d."""
    torch.manual_seed(1)
    module = DrawnWeights(3, 64, shared, hidden=64)
    hidden = module.hidden.weight.split(64)
    drawn = [module.drawn] if shared else list(module.drawn)
    assert len(hidden) == len(drawn) == (1 if shared else 3)
    for matrix in (*hidden, *drawn):
        bound = (6 / sum(matrix.shape)) ** 0.5
        assert 0.99 * bound < matrix.abs().max() <= bound


def test_maps_of_own_and_of_all_layers():
    torch.manual_seed(1)
    layers = torch.randn(2, 5, 3, 4)
    own, all_of_them = LayerMaps(3, 4, together=False), LayerMaps(3, 4, together=True)
    for layer in range(3):
        columns = slice(4 * layer, 4 * (layer + 1))
        torch.testing.assert_close(own(layers)[..., layer, :], layers[..., layer, :] @ own.weight[:, columns])
        torch.testing.assert_close(
            all_of_them(layers)[..., layer, :], layers.flatten(-2) @ all_of_them.weight[:, columns]
        )


def test_one_iteration_of_dynamic_routing_squashes_the_mean_vote():
    torch.manual_seed(1)
    module = CapsuleVotes(3, 8, RoutingOptions(capsules=4))
    _, votes = module(torch.randn(2, 5, 3, 8))
    assert votes.shape == (2, 5, 3, 4, 2)
    torch.testing.assert_close(dynamic_routing(votes, 1).capsules, squash(votes.mean(-3) * 3 / 4))


# What Dou 2019 adds to the base model, in millions (Table 1), and the reading that has this size at d = 512, L = 6.
REPORTED = {
    "linear-combination:form=matrix_dense": 14.7,
    "dynamic-combination": 25.2,
    "dynamic-routing:votes=concatenated": 37.8,
    "em-routing:votes=concatenated": 56.8,
}
SQUARES = {  # parameters in d^2, but for vectors
    "linear-combination": 0,
    "linear-combination:form=matrix_top": 12,
    "linear-combination:form=matrix_dense": 56,
    "dynamic-combination": 96,
    "dynamic-combination:form=per_layer": 84,
    "dynamic-routing": 84,
    "dynamic-routing:inputs=own": 24,
    "dynamic-routing:votes=concatenated": 144,
    "dynamic-routing:side=encoder": 42,
    "em-routing": 84,
    "em-routing:votes=concatenated": 216,
}


@pytest.mark.parametrize("name", SQUARES)
def test_what_a_system_adds(name):
    with torch.device("meta"):
        sizes = [
            sum(p.numel() for p in build(f"{one}{',' if ':' in one else ':'}preset=base", 100).parameters())
            for one in (name, "transformer")
        ]
    added, vectors = sizes[0] - sizes[1], 40 * 512
    assert SQUARES[name] * 512**2 <= added <= SQUARES[name] * 512**2 + vectors
    if name in REPORTED:
        assert added / 1e6 == pytest.approx(REPORTED[name], abs=0.2)


@pytest.mark.parametrize("name", ["dynamic-routing", "em-routing"])
def test_the_trace_has_every_iteration_of_both_sides(name):
    system = random_system(f"{name}:capsules=16,iterations=4,encoder_layers=2,decoder_layers=2")
    batch = collate(random_sentences([5, 2], 1), random_sentences([3, 6], 2))
    writer = TraceWriter(["*.assignments"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    trace = writer.sentences({"source": [6, 3], "target": [4, 7]})[1]
    kind = name.replace("-", "_")
    for side, positions in (("encoder", 3), ("decoder", 7)):
        array = trace[f"{kind}.{side}.assignments"]
        assert array.axes == ("iteration", {"encoder": "source", "decoder": "target"}[side], "layer", "capsule")
        assert array.values.shape == (4, positions, 2, 16)
        assert abs(array.values[0] - 1 / 16).max() < 1e-6
        assert abs(array.values[1] - 1 / 16).max() > 1e-4
        array.check("assignments", 1e-5)


def test_capsules_that_do_not_divide_the_width_are_refused():
    with pytest.raises(
        ConfigError, match="em_routing on transformer: capsules: 7 do not divide a vector of 64 numbers"
    ):
        build("em-routing:preset=tiny,capsules=7", 20)


def test_a_backbone_without_a_stack_is_refused():
    with pytest.raises(ConfigError, match="dynamic_routing on rnnsearch: there is no stack of layers in this encoder"):
        build("dynamic-routing:backbone=rnnsearch,side=encoder,preset=tiny", 20)
