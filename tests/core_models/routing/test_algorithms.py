"""Routing: hand-worked cases, the closed forms they must agree with, and what must never happen to a gradient."""

import math

import pytest
import torch

from core_models.routing.algorithms import dynamic_routing, em_routing, schedule, simple_routing, squash

FLOAT = torch.float64


def close(found, wanted, tolerance=1e-6):
    torch.testing.assert_close(
        found, torch.as_tensor(wanted, dtype=found.dtype), rtol=0, atol=tolerance, check_dtype=False
    )


@pytest.mark.parametrize(
    ("vector", "wanted"), [([3, 4], [15 / 26, 20 / 26]), ([2], [0.8]), ([-1], [-0.5]), ([0, 0], [0, 0])]
)
def test_squash(vector, wanted):
    close(squash(torch.tensor(vector, dtype=FLOAT)), wanted)


def test_the_gradient_of_squash_at_zero_is_finite():
    zero = torch.zeros(2, 3, requires_grad=True)
    squash(zero).sum().backward()
    assert torch.isfinite(zero.grad).all()


VOTES = torch.tensor([[[1, 0], [2, 2]], [[1, 0], [-2, -1]]], dtype=FLOAT)  # [L, N, D]


def test_dynamic_routing_by_hand():
    """The agreement of iteration 1: capsules squash([1, 0]) and squash([0, 0.5]) with each vote."""
    found = dynamic_routing(VOTES, 3)
    close(found.assignments[0], [[0.5, 0.5], [0.5, 0.5]])
    close(found.assignments[1], [[0.524979, 0.475021], [0.668188, 0.331812]])
    close(found.assignments[2], [[0.461448, 0.538552], [0.863142, 0.136858]])
    close(found.capsules, [[0.636963, 0], [0.392795, 0.459708]])


def test_simple_routing_by_hand():
    """Means [1, 0] and [0, 0.5] of the votes agree with them by [[1, 1], [1, -0.5]]; then softmax, and means again."""
    found = simple_routing(VOTES, 2)
    close(found.assignments[0], [[0.5, 0.5], [0.5, 0.5]])
    close(found.assignments[1], [[0.5, 0.5], [0.817574, 0.182426]])
    close(found.capsules, [[1, 0], [0.930723, 1.198042]])


def test_an_output_that_no_input_is_assigned_to_has_a_finite_mean():
    votes = torch.tensor([[[1e4], [-1.0]], [[1e4], [1.0]]], requires_grad=True)
    found = simple_routing(votes, 3)
    found.capsules.sum().backward()
    assert torch.isfinite(found.capsules).all()
    assert torch.isfinite(votes.grad).all()
    assert found.capsules[1].abs() <= 1


def test_an_input_that_is_none_is_as_if_it_were_not_there():
    votes = torch.randn(5, 4, 3, 2, dtype=FLOAT)
    mask = torch.tensor([True, True, False, True])
    masked, without = dynamic_routing(votes, 3, mask.expand(5, 4)), dynamic_routing(votes[:, mask], 3)
    close(masked.capsules, without.capsules, 1e-12)
    close(masked.assignments[:, :, mask], without.assignments, 1e-12)
    assert masked.assignments[:, :, 2].abs().max() == 0


EM_VOTES = torch.tensor([[0, 0], [2, 1], [4, 8]], dtype=FLOAT)[..., None]  # three inputs, two outputs, width 1
INPUTS = torch.tensor([1, 1, 0.5], dtype=FLOAT)
ZERO = torch.zeros(2, dtype=FLOAT)


def test_em_routing_by_hand():
    """One iteration: mean and variance of the votes 0, 2, 4 and 0, 1, 8 weighted by 1, 1, 0.5."""
    once = em_routing(EM_VOTES, INPUTS, ZERO, ZERO, 1)
    close(once.activations, [0.092985, 0.040673])
    close(once.capsules[..., 0], [0.148776, 0.081345])
    found = em_routing(EM_VOTES, INPUTS, ZERO, ZERO, 3)
    close(found.assignments[1], [[0.764805, 0.235195], [0.825185, 0.174815], [0.900613, 0.099387]])
    close(found.assignments[2], [[0.080224, 0.919776], [0.123028, 0.876972], [0.701726, 0.298274]])
    close(found.activations, [0.269075, 0.015324], 2e-6)
    close(found.capsules[..., 0], [0.800990, 0.016302], 2e-6)


def test_activations_of_inputs_count_unless_they_are_divided_out():
    other = torch.tensor([0.5, 1, 1], dtype=FLOAT)

    def capsules(inputs, renormalize):
        return em_routing(EM_VOTES, inputs, ZERO, ZERO, 2, renormalize=renormalize).capsules

    assert (capsules(INPUTS, False) - capsules(other, False)).abs().max() > 0.01
    close(capsules(INPUTS, True), capsules(other, True), 1e-12)


def test_activations_do_nothing_where_outputs_are_many_unless_the_mass_is_normalised():
    """With six inputs and 512 outputs a mass is about 6 / 512 halved: sigmoid(cost) stays at a half."""
    generator = torch.Generator().manual_seed(1)
    votes, inputs = torch.randn(6, 512, 1, generator=generator), torch.full((6,), 0.5)
    zero = torch.zeros(512)
    found = em_routing(votes, inputs, zero, zero, 3, schedule(0.01, 3)).activations
    assert 0.4999 < found.min() <= found.max() < 0.5001
    plain = em_routing(votes, inputs, zero, zero, 3).activations
    assert 0.49 < plain.min() <= plain.max() < 0.51
    normalised = em_routing(votes, inputs, zero, zero, 3, normalize_mass=True).activations
    assert normalised.max() - normalised.min() > 0.1


def test_where_capsules_are_wide_activations_are_all_or_nothing_unless_costs_count_little():
    """Eight outputs of width 64: a cost sums over 64 dimensions."""
    generator = torch.Generator().manual_seed(1)
    scale = torch.linspace(0.1, 2, 8)[:, None]  # of the votes for each output
    votes, inputs, zero = torch.randn(6, 8, 64, generator=generator) * scale, torch.full((6,), 0.5), torch.zeros(8)
    plain = em_routing(votes, inputs, zero, zero, 1).activations
    assert plain.min() < 1e-3 < 0.999 < plain.max()
    little = em_routing(votes, inputs, zero, zero, 1, 0.01).activations
    assert 0.35 < little.min() <= little.max() < 0.6


def random_case():
    """Votes [2, 3, 4, 2], activations of their inputs, and both betas."""
    draw = torch.Generator().manual_seed(3)
    shapes = [(2, 3, 4, 2), (2, 3), (4,), (4,)]
    return [torch.rand(*shape, dtype=FLOAT, generator=draw).requires_grad_() for shape in shapes]


def assert_gradients_of_the_last_iteration_alone(detached, written_out, whole, given):
    torch.testing.assert_close(detached, whole, rtol=0, atol=0)
    close(detached, written_out, 1e-12)
    of_each = [torch.autograd.grad(made.sum(), given) for made in (detached, written_out, whole)]
    for one, other in zip(*of_each[:2], strict=True):
        close(one, other, 1e-10)
    assert (of_each[0][0] - of_each[2][0]).abs().max() > 1e-3


def test_a_detached_dynamic_routing_takes_earlier_iterations_for_constants():
    votes, *_ = random_case()
    before = dynamic_routing(votes, 2)
    logits = before.assignments[-1].log().detach()  # but for what is the same for all outputs
    agreement = (votes * before.capsules.detach()[:, None]).sum(-1)
    written_out = squash((torch.softmax(logits + agreement, -1)[..., None] * votes).sum(-3))
    found = [dynamic_routing(votes, 3, detach=detach).capsules for detach in (True, False)]
    assert_gradients_of_the_last_iteration_alone(found[0], written_out, found[1], [votes])


def test_a_detached_em_routing_takes_earlier_iterations_for_constants():
    votes, inputs, beta_a, beta_u = given = random_case()

    def gaussians(assigned):
        sent = (assigned * inputs[..., None])[..., None]
        mean = (sent * votes).sum(1) / sent.sum(1)
        return mean, (sent * (votes - mean[:, None]).square()).sum(1) / sent.sum(1) + 0.1, sent.sum((1, 3))

    before = em_routing(*given, 2, variance_floor=0.1)
    mean, variance, _ = (one.detach() for one in gaussians(before.assignments[-1]))
    fit = -((votes - mean[:, None]).square() / (2 * variance)[:, None]).sum(-1)
    prior = before.activations.detach().log() - 0.5 * variance.log().sum(-1)
    mean, variance, mass = gaussians(torch.softmax(fit + prior[:, None], -1))
    cost = mass * (0.5 * variance.log() + (1 + math.log(2 * math.pi)) / 2).sum(-1)
    written_out = torch.sigmoid(beta_a - beta_u * mass - cost)[..., None] * mean
    found = [em_routing(*given, 3, variance_floor=0.1, detach=detach).capsules for detach in (True, False)]
    assert_gradients_of_the_last_iteration_alone(found[0], written_out, found[1], given)


def test_the_schedule():
    close(torch.tensor(schedule(0.01, 3)), [0.0005, 0.000975, 0.001426], 1e-6)
    with pytest.raises(ValueError, match="2 inverse temperatures for 3 iterations"):
        em_routing(EM_VOTES, INPUTS, ZERO, ZERO, 3, [1.0, 2.0])


@pytest.mark.parametrize("width", [1, 4])
def test_every_iteration_is_a_distribution_over_outputs(width):
    votes = torch.randn(7, 3, 5, width, dtype=FLOAT)
    beta = torch.randn(2, 5, dtype=FLOAT)
    found = [dynamic_routing(votes, 4), em_routing(votes, torch.rand(7, 3, dtype=FLOAT), beta[0], beta[1], 4)]
    for routing in found:
        assert routing.assignments.shape == (4, 7, 3, 5)
        close(routing.assignments.sum(-1), torch.ones(4, 7, 3))
        assert routing.capsules.shape == (7, 5, width)


def test_routing_is_float32_under_autocast_and_its_gradients_are_finite():
    votes = torch.zeros(2, 3, 4, 2, dtype=torch.bfloat16, requires_grad=True)
    inputs = torch.zeros(2, 3, requires_grad=True)
    beta = torch.zeros(4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = [dynamic_routing(votes).capsules, em_routing(votes, inputs, beta, beta).capsules, squash(votes)]
    assert {one.dtype for one in found} == {torch.float32}
    sum(one.sum() for one in found).backward()
    assert all(torch.isfinite(one.grad).all() for one in (votes, inputs, beta))


@pytest.mark.parametrize("kind", ["dynamic", "em"])
def test_gradients_flow_through_every_iteration(kind):
    votes = torch.randn(2, 3, 4, 2, dtype=FLOAT, requires_grad=True)
    inputs = torch.rand(2, 3, dtype=FLOAT, requires_grad=True)
    beta = torch.randn(2, 4, dtype=FLOAT, requires_grad=True)

    def capsules(votes, inputs, beta):
        if kind == "dynamic":
            return dynamic_routing(votes).capsules
        return em_routing(votes, inputs, beta[0], beta[1]).capsules

    assert torch.autograd.gradcheck(capsules, (votes, inputs, beta))


def test_what_cannot_be_routed_is_refused():
    with pytest.raises(ValueError, match=r"votes \[\.\.\., inputs, outputs, width\] are needed, here are \[3, 4\]"):
        dynamic_routing(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="0 iterations"):
        dynamic_routing(VOTES, 0)
