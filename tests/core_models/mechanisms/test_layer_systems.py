"""Whole systems of layer aggregation beside NumPy in float64: from the layers of a stack to what leaves it."""

from collections import defaultdict

import numpy as np
import pytest
import torch

from core_models.routing.algorithms import schedule
from core_models.system_builder import build
from core_models.text.batches import collate
from tests.core_models.laws import (
    assert_finite_gradients,
    awkward_batch,
    exact,
    log_probs,
    random_sentences,
    random_system,
    training_terms,
)
from tests.core_models.routing.test_algorithms_numpy import by_agreement, by_expectation, squash, squash_unit_slope

SIDES = ("encoder", "decoder")


def numbers(tensor):
    return tensor.detach().numpy()


def normed(x, module):
    """A layer norm, or nothing."""
    if not hasattr(module, "weight"):
        return x
    apart = x - x.mean(-1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(-1, keepdims=True) + module.eps) * numbers(module.weight) + numbers(
        module.bias
    )


class Watched:
    """One forced pass of a sentence, watched: the raw states of each side, what each layer began with, what left."""

    def __init__(self, system, monkeypatch):
        self.states, self.inputs = defaultdict(list), defaultdict(list)
        embedded = []
        system.backbone.drop.register_forward_hook(lambda module, given, x: embedded.append(x))
        for side in SIDES:
            for block in getattr(system.backbone, side):
                self._watch(block, side, monkeypatch)
        batch = collate(random_sentences([5], 1), random_sentences([3], 2))
        with torch.no_grad():
            encoded = system.encode(batch)
            forced = system(encoded, batch.target_in, batch.target_mask)
            self.scores = numbers(torch.log_softmax(system.scores(forced).values, -1)[0])
        self.memory = numbers(encoded.sentence["backbone"]["memory"][0])
        for side, x in zip(SIDES, embedded, strict=True):
            self.states[side].insert(0, numbers(x[0]))

    def _watch(self, block, side, monkeypatch):
        enter, feed_forward = block.enter, block.feed_forward

        def entering(x, norm):
            if norm is block.attention_norm:
                self.inputs[side].append(numbers(x[0]))
            return enter(x, norm)

        def leaving(x):
            made = feed_forward(x)
            self.states[side].append(numbers(made[0]))
            return made

        monkeypatch.setattr(block, "enter", entering)
        monkeypatch.setattr(block, "feed_forward", leaving)


def weighted(weight, layers):
    """Sum over layers of a vector's or a matrix's product with the layer."""
    return sum(h * w if w.ndim == 1 else h @ w for h, w in zip(layers, numbers(weight), strict=True))


def drawn(module, layers):
    """Dou 2019, Eq. 4 and 5: the weights of each layer from a network that reads all of them."""
    together = np.concatenate(layers, -1)
    total, width = 0, layers[0].shape[-1]
    for layer, h in enumerate(layers):
        first, second = numbers(module.hidden.weight), numbers(module.drawn)
        bias = numbers(module.hidden.bias)
        if second.ndim == 3:
            own = slice(layer * second.shape[1], (layer + 1) * second.shape[1])
            first, bias, second = first[own], bias[own], second[layer]
        else:
            second = second[:, layer * width : (layer + 1) * width]
        total = total + (np.maximum(together @ first.T + bias, 0) @ second + numbers(module.bias)[layer]) * h
    return total


def mapped(module, layers):
    """Each layer's vector from its own, or from all of them side by side."""
    width, weight = layers[0].shape[-1], numbers(module.weight)
    given = [np.concatenate(layers, -1)] * len(layers) if len(weight) > width else layers
    return [x @ weight[:, number * width : (number + 1) * width] for number, x in enumerate(given)]


def routed(mechanism, side, layers):
    """Capsules side by side, divided by the root of their mean square unless an option forbids it."""
    capsules = capsules_of(mechanism, side, layers)
    if mechanism.options.scale == "none":
        return capsules
    return capsules / np.sqrt((capsules**2).mean(-1, keepdims=True))


def capsules_of(mechanism, side, layers):
    """Dou 2019, Eq. 6 and 7, and Algorithm 1 or 2 at every position."""
    options, module = mechanism.options, mechanism.combine[side]
    made = mapped(module.transform, layers)
    made = [np.tanh(x) for x in made] if options.activation == "tanh" else made
    votes = np.stack(mapped(module.vote, made), 1)  # [positions, L, d]
    votes = votes.reshape(*votes.shape[:2], module.capsules, -1)
    if not hasattr(mechanism, "active"):
        squashed = squash_unit_slope if options.squash == "unit_slope" else squash
        how = options.iterations, options.normalize_mass, squashed
        return np.stack([by_agreement(v, *how)[0].ravel() for v in votes])
    heard = mapped(mechanism.heard[side], made) if side in mechanism.heard else made
    said = np.stack([x @ a for x, a in zip(heard, numbers(mechanism.active[side]), strict=True)], 1)
    active = 1 / (1 + np.exp(-said)) if options.input_activation == "sigmoid" else np.maximum(said, 1e-6)
    count = options.iterations
    rising = schedule(options.inverse_temperature, count)
    temperatures = rising if options.schedule == "rising" else [options.inverse_temperature] * count
    betas = numbers(mechanism.beta_a[side]), numbers(mechanism.beta_u[side])
    mean = options.width_reduction == "mean"
    how = temperatures, options.variance_floor, options.normalize_mass, options.renormalize, mean
    return np.stack([by_expectation(v, a, *betas, *how)[0].ravel() for v, a in zip(votes, active, strict=True)])


def leaving(mechanism, side, states, final):
    """What leaves a stack, by the equations, of its raw states [embedding, H^1, ..., H^L]."""
    embedded = mechanism.options.include_embedding
    layers = [normed(h, final) for h in (states if embedded else states[1:])]
    kind = type(mechanism).__name__
    if kind == "LinearCombination":
        combined = weighted(mechanism.combine[side].weight, layers)
    elif kind == "DynamicCombination":
        combined = drawn(mechanism.combine[side], layers)
    else:
        combined = routed(mechanism, side, layers)
    return normed(states[-1] + combined if mechanism.options.residual else combined, mechanism.norm[side])


NAMES = [
    "linear-combination",
    "linear-combination:form=matrix_top,residual=true",
    "linear-combination:form=matrix_dense",
    "dynamic-combination",
    "dynamic-combination:form=per_layer,hidden=24,norm=post",
    "dynamic-combination:include_embedding=true,side=decoder",
    "dynamic-routing:capsules=16",
    "dynamic-routing:capsules=8,inputs=own,iterations=2,activation=none",
    "dynamic-routing:capsules=32,votes=concatenated,iterations=1,norm=post",
    "dynamic-routing:normalize_mass=true,side=encoder",
    "dynamic-routing:scale=none,capsules=4",
    "dynamic-routing:squash=unit_slope,residual=true",
    "em-routing",
    "em-routing:capsules=4,width_reduction=mean",
    "em-routing:scale=none,residual=true",
    "em-routing:capsules=16,inputs=own,iterations=4,residual=true",
    "em-routing:capsules=8,votes=concatenated,inverse_temperature=0.01,schedule=rising,norm=post",
    "em-routing:input_activation=none,normalize_mass=true,side=decoder,activation=none",
    "em-routing:renormalize=true,include_embedding=true,iterations=1,side=encoder",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_leaves_a_stack_is_what_the_equations_make_of_its_layers(name, monkeypatch):
    """In a pre-norm stack each layer is read through the final norm, whose residual stream would grow with depth."""
    system = random_system(f"{name}{',' if ':' in name else ':'}encoder_layers=3,decoder_layers=2")
    (mechanism,), backbone = system.mechanisms.values(), system.backbone
    watched = Watched(system, monkeypatch)
    outputs = {}
    for side, final in (("encoder", backbone.encoder_norm), ("decoder", backbone.decoder_norm)):
        states = watched.states[side]
        left = leaving(mechanism, side, states, final) if side in mechanism.sides else states[-1]
        outputs[side] = normed(left, final)
    np.testing.assert_allclose(watched.memory, outputs["encoder"], rtol=0, atol=1e-6)
    logits = outputs["decoder"] @ numbers(backbone.output_matrix[0]).T
    wanted = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    # squash has 1e-8 under its root, for the gradient's sake
    np.testing.assert_allclose(watched.scores, wanted, rtol=0, atol=5e-6)


def test_dense_matrices_make_every_layers_input_of_all_states_below(monkeypatch):
    system = random_system("linear-combination:form=matrix_dense,encoder_layers=3,decoder_layers=2")
    (mechanism,), watched = system.mechanisms.values(), Watched(system, monkeypatch)
    for side, final in (("encoder", system.backbone.encoder_norm), ("decoder", system.backbone.decoder_norm)):
        states = [normed(h, final) for h in watched.states[side]]
        for layer, given in enumerate(watched.inputs[side]):
            wanted = weighted(mechanism.inputs[side][layer].weight, states[: layer + 1])
            np.testing.assert_allclose(given, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["dynamic-routing:capsules=16", "em-routing"])
def test_detached_routing_has_the_same_scores_and_other_gradients(name):
    systems = [random_system(f"{name}{',' if ':' in name else ':'}detach={detach}") for detach in ("false", "true")]
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    torch.testing.assert_close(*(log_probs(system, batch) for system in systems), rtol=0, atol=1e-12)
    found = []
    for system in systems:
        training_terms(system, batch)["main"].sum().backward()
        (mechanism,) = system.mechanisms.values()
        found.append(mechanism.combine["encoder"].vote.weight.grad)
    assert (found[0] - found[1]).abs().max() > 1e-6 * found[0].abs().max()


def test_inputs_that_are_not_active_at_all_have_finite_gradients():
    """Without the sigmoid of Eq. 10 a sum of activations could be nothing, or less."""
    system = random_system("em-routing:input_activation=none", torch.float32)
    with torch.no_grad():
        for active in system.mechanisms["em_routing"].active.values():
            active.zero_()
    assert_finite_gradients(system, awkward_batch())


@pytest.mark.parametrize("name", ["linear-combination", "dynamic-combination", "em-routing"])
def test_aggregation_begins_with_every_layer_having_a_part(name):
    """Training from scratch would else have to find the lower layers first."""
    torch.manual_seed(1)
    system = build(exact(f"{name}:encoder_layers=3"), 19).double()
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    (mechanism,) = system.mechanisms.values()
    seen = []
    mechanism.combine["encoder"].register_forward_hook(lambda module, given, made: seen.append(given[0]))
    mechanism.combine["encoder"].register_forward_pre_hook(lambda module, given: given[0].retain_grad())
    training_terms(system, batch)["main"].sum().backward()
    shares = seen[0].grad.abs().mean((0, 1, 3))
    assert (shares > 0.05 * shares.sum()).all()
