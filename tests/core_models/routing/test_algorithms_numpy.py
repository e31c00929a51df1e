"""Routing beside a second implementation: NumPy in float64, a loop for every sum, written from the equations alone."""

import itertools
import math

import numpy as np
import pytest
import torch

from core_models.routing.algorithms import dynamic_routing, em_routing, schedule, simple_routing


def squash(vector):
    square = float(vector @ vector)
    return vector * math.sqrt(square) / (1 + square)


def squash_unit_slope(vector):
    return vector / math.sqrt(1 + float(vector @ vector))


def softmax(values):
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def by_simple_agreement(votes, iterations):
    """Li 2019, simple routing, of one position: votes [L, N, D] -> capsules [N, D], assignments [iterations, L, N]."""
    inputs, outputs, _ = votes.shape
    logits, history = np.zeros((inputs, outputs)), []
    for iteration in range(iterations):
        assigned = np.stack([softmax(row) for row in logits])
        history.append(assigned)
        capsules = np.stack([(assigned[:, n] @ votes[:, n]) / sum(assigned[:, n]) for n in range(outputs)])
        if iteration < iterations - 1:
            for i, n in itertools.product(range(inputs), range(outputs)):
                logits[i, n] += capsules[n] @ votes[i, n]
    return capsules, np.stack(history)


def by_agreement(votes, iterations, normalize_mass, squashed=squash):
    """Dou 2019, Algorithm 1, of one position: votes [L, N, D] -> capsules [N, D], assignments [iterations, L, N]."""
    inputs, outputs, _ = votes.shape
    times = outputs / inputs if normalize_mass else 1
    logits, history = np.zeros((inputs, outputs)), []
    for iteration in range(iterations):
        assigned = np.stack([softmax(row) for row in logits])
        history.append(assigned)
        capsules = np.stack(
            [squashed(times * sum(assigned[i, n] * votes[i, n] for i in range(inputs))) for n in range(outputs)]
        )  # fmt: skip
        if iteration < iterations - 1:
            for i, n in itertools.product(range(inputs), range(outputs)):
                logits[i, n] += capsules[n] @ votes[i, n]
    return capsules, np.stack(history)


def by_expectation(votes, active, beta_a, beta_u, temperatures, floor, normalize_mass, renormalize, mean=False):
    """Dou 2019, Algorithm 2 and Equations 10 to 16, of one position, densities and not their logarithms.

    mean: costs and log-densities are means over the width: a density is the geometric mean of those of its numbers.
    """
    inputs, outputs, width = votes.shape
    share = 1 / width if mean else 1
    assigned, history = np.full((inputs, outputs), 1 / outputs), []
    for iteration, temperature in enumerate(temperatures):
        history.append(assigned)
        means, variances, activations = np.empty((outputs, width)), np.empty((outputs, width)), np.empty(outputs)
        for n in range(outputs):
            sent = [assigned[i, n] * (1 if renormalize else active[i]) for i in range(inputs)]
            mass = sum(sent)
            means[n] = sum(part * votes[i, n] for i, part in enumerate(sent)) / mass
            variances[n] = sum(part * (votes[i, n] - means[n]) ** 2 for i, part in enumerate(sent)) / mass + floor
            weighed = mass * outputs / inputs if normalize_mass else mass
            cost = share * weighed * sum(0.5 * math.log(one) + (1 + math.log(2 * math.pi)) / 2 for one in variances[n])
            activations[n] = 1 / (1 + math.exp(-temperature * (beta_a[n] - beta_u[n] * weighed - cost)))
        if iteration == len(temperatures) - 1:
            break
        density = np.empty((inputs, outputs))
        for i, n in itertools.product(range(inputs), range(outputs)):
            exponent = sum((votes[i, n] - means[n]) ** 2 / (2 * variances[n]))
            gaussian = math.exp(-exponent) / math.sqrt(np.prod(2 * math.pi * variances[n]))
            density[i, n] = activations[n] * gaussian**share
        assigned = density / density.sum(1, keepdims=True)
    return activations[:, None] * means, np.stack(history), activations


def same(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=0, atol=1e-12)


SHAPES = [(1, 3, 2), (6, 8, 1), (4, 5, 3), (3, 1, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_simple_routing(shape, iterations):
    votes = np.random.default_rng(iterations).normal(size=(4, *shape))
    found = simple_routing(torch.tensor(votes), iterations)
    for position, vote in enumerate(votes):
        capsules, history = by_simple_agreement(vote, iterations)
        same(found.capsules[position], capsules)
        same(found.assignments[:, position], history)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize("normalize_mass", [False, True])
@pytest.mark.parametrize(("kind", "squashed"), [("sabour", squash), ("unit_slope", squash_unit_slope)])
def test_dynamic_routing(shape, iterations, normalize_mass, kind, squashed):
    votes = np.random.default_rng(iterations).normal(size=(4, *shape))
    found = dynamic_routing(torch.tensor(votes), iterations, normalize_mass=normalize_mass, squash_by=kind)
    for position, vote in enumerate(votes):
        capsules, history = by_agreement(vote, iterations, normalize_mass, squashed)
        # squash has 1e-8 under its root, for the gradient's sake; it moves a length by less than 1e-8 of itself here
        np.testing.assert_allclose(found.capsules[position].numpy(), capsules, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.assignments[:, position].numpy(), history, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize(("normalize_mass", "renormalize"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_em_routing(shape, iterations, normalize_mass, renormalize, reduction):
    draw = np.random.default_rng(iterations)
    votes, active = draw.normal(size=(4, *shape)), draw.uniform(0.05, 1, size=(4, shape[0]))
    beta_a, beta_u = draw.normal(size=(2, shape[1]))
    for temperatures in ([1.0] * iterations, schedule(0.01, iterations)):
        found = em_routing(
            torch.tensor(votes), torch.tensor(active), torch.tensor(beta_a), torch.tensor(beta_u), iterations,
            temperatures, 0.01, normalize_mass=normalize_mass, renormalize=renormalize, width_reduction=reduction,
        )  # fmt: skip
        for position in range(4):
            capsules, history, activations = by_expectation(
                votes[position], active[position], beta_a, beta_u, temperatures, 0.01, normalize_mass, renormalize,
                mean=reduction == "mean",
            )  # fmt: skip
            same(found.capsules[position], capsules)
            same(found.assignments[:, position], history)
            same(found.activations[position], activations)
