"""Guided routing: the hand-worked case, a NumPy implementation with a loop for every sum, and what must not happen."""

import itertools
import math

import numpy as np
import pytest
import torch

from core_models.layers import additive_energy
from core_models.layers.additive_energy import additive_energies
from core_models.routing.algorithms import squash as torch_squash
from core_models.routing.guided import guided_routing, plan, route
from tests.core_models.routing.test_algorithms_numpy import softmax, squash

FLOAT = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


ONE = torch.eye(2, dtype=FLOAT)
SOURCE = tensor([1, 0], [0, 1], [2, 2])  # the third word is padding
MASK = torch.tensor([[True, True, False]])
VOTES = torch.stack([SOURCE, SOURCE @ tensor([0, 2], [-1, 1])], dim=1)[None]  # [1, I, J, D]
GUIDE = tensor([1, -1], [0, 2])[None]
WEIGHT = tensor(1, -2)
RELEASED_WITH_PADDING = tensor([[0.643987, 0.588093], [-0.319357, 0.871800]])  # padded words vote there


def close(found, wanted, tolerance=1e-6):
    torch.testing.assert_close(found, torch.as_tensor(wanted, dtype=found.dtype), rtol=0, atol=tolerance)


def hand_worked(agreement="paper", words=3, **options):
    return guided_routing(VOTES[:, :words], GUIDE, ONE, ONE, WEIGHT, MASK[:, :words], agreement=agreement, **options)


def test_by_hand():
    """Two real words, two capsules, two positions; every matrix of the agreement is one, w = [1, -2]."""
    found = hand_worked()
    assert found.assignments.shape == (3, 1, 2, 3, 2)
    close(found.assignments[0, 0], [[[0.5, 0.5], [0.5, 0.5], [0, 0]]] * 2)
    close(found.assignments[1, 0, 0], [[0.970124, 0.029876], [0.856120, 0.143880], [0, 0]])
    close(found.assignments[2, 0, 0], [[0.998229, 0.001771], [0.883711, 0.116289], [0, 0]])
    close(found.assignments[2, 0, 1], [[0.895488, 0.104512], [0.904136, 0.095864], [0, 0]])
    close(found.capsules[0, 0], [[0.479164, 0.424194], [-0.018891, 0.019466]])
    close(found.capsules[0, 1], [[0.435047, 0.439249], [-0.027799, 0.088413]])


def test_the_first_iteration_is_the_same_at_every_position():
    wanted = [[0.235702, 0.235702], [-0.225877, 0.677631]]
    close(plan(VOTES, ONE, ONE, MASK).first[0], wanted)
    close(hand_worked(iterations=1).capsules[0], [wanted, wanted])


def test_bounded_agreement_by_hand():
    found = hand_worked("bounded").capsules[0]
    close(found[0], [[0.452803, 0.400032], [-0.060061, 0.108950]])
    close(found[1], [[0.270579, 0.249928], [-0.225601, 0.636713]])
    assert (found[0] - RELEASED_WITH_PADDING).abs().max() > 0.1


@pytest.mark.parametrize("agreement", ["paper", "bounded"])
def test_padding_votes_for_nothing(agreement):
    padded, without = hand_worked(agreement), hand_worked(agreement, words=2)
    close(padded.capsules, without.capsules, 1e-12)
    close(padded.assignments[..., :2, :], without.assignments, 1e-12)
    assert padded.assignments[..., 2, :].abs().max() == 0


def test_bounded_agreement_keeps_assignments_near_even():
    """With width 60, six capsules and three iterations no logit passes 2 / sqrt(60): no word is ever PAST alone."""
    most, least = math.exp(2 / math.sqrt(60)), math.exp(-2 / math.sqrt(60))
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=FLOAT) * 20

    found = guided_routing(
        draw(2, 5, 6, 60), draw(2, 4, 60), draw(60, 60), draw(60, 60), draw(60), torch.ones(2, 5).bool(),
        agreement="bounded",
    ).assignments[-1]  # fmt: skip
    assert least / (least + 5 * most) <= found.min() < 0.12
    assert 0.24 < found.max() <= most / (most + 5 * least)
    groups = found.unflatten(-1, (3, 2)).sum(-1)
    assert least / (least + 2 * most) <= groups.min() <= groups.max() <= most / (most + 2 * least)


def by_the_algorithm(votes, guide, from_vote, from_capsule, weight, iterations, bounded):
    """Algorithm 1 at one position: votes [I, J, D] -> capsules [J, D], assignments [iterations, I, J]."""
    words, count, width = votes.shape
    logits, history = np.zeros((words, count)), []
    for _ in range(iterations):
        assigned = np.stack([softmax(row) for row in logits])
        history.append(assigned)
        capsules = np.stack([squash(sum(assigned[i, j] * votes[i, j] for i in range(words))) for j in range(count)])
        for i, j in itertools.product(range(words), range(count)):
            agreed = weight @ np.tanh(guide + votes[i, j] @ from_vote + capsules[j] @ from_capsule)
            logits[i, j] += np.tanh(agreed) / np.sqrt(width) if bounded else agreed
    return capsules, np.stack(history)


@pytest.mark.parametrize("shape", [(1, 2, 3), (4, 6, 5), (7, 4, 1)])
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize("bounded", [False, True])
def test_random_cases_equal_numpy(shape, iterations, bounded):
    draw, (words, count, width) = np.random.default_rng(iterations), shape
    votes, guide = draw.normal(size=(3, words, count, width)), draw.normal(size=(3, 4, width))
    from_vote, from_capsule, weight = (draw.normal(size=size) for size in ((width, width), (width, width), width))
    lengths = [words, max(1, words - 2), words]
    mask = np.arange(words) < np.array(lengths)[:, None]
    given = [torch.tensor(one) for one in (votes, guide, from_vote, from_capsule, weight, mask)]
    found = guided_routing(*given, iterations=iterations, agreement="bounded" if bounded else "paper")
    for b, t in itertools.product(range(3), range(4)):
        real = votes[b, : lengths[b]]
        capsules, history = by_the_algorithm(real, guide[b, t], from_vote, from_capsule, weight, iterations, bounded)
        # squash has 1e-8 under its root, for the gradient's sake
        close(found.capsules[b, t], capsules, 1e-6)
        close(found.assignments[:, b, t, : lengths[b]], history, 1e-6)


def random_case(width=3):
    generator = torch.Generator().manual_seed(width)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=FLOAT).requires_grad_()

    return draw(2, 3, 4, width), draw(2, 5, width), draw(width, width), draw(width, width), draw(width)


MASKS = torch.tensor([[True, True, True], [True, False, False]])


@pytest.mark.long
def test_gradients_flow_through_every_iteration():
    assert torch.autograd.gradcheck(lambda *given: guided_routing(*given, MASKS).capsules, random_case())


@pytest.mark.parametrize("iterations", [2, 3])
def test_a_detached_routing_has_the_gradient_of_its_last_iteration_alone(iterations):
    """Written out: of what the iteration before left, logits and capsules, as constants."""
    votes, guide, from_vote, from_capsule, weight = case = random_case()
    found = guided_routing(*case, MASKS, iterations=iterations, detach=True)
    before = guided_routing(*case, MASKS, iterations=iterations - 1)
    close(found.capsules, guided_routing(*case, MASKS, iterations=iterations).capsules, 1e-12)
    logits = before.assignments[-1].clamp(min=1e-30).log().detach()
    from_capsules = before.capsules.detach()[:, :, None] @ from_capsule
    agreed = torch.tanh(guide[:, :, None, None] + (votes @ from_vote)[:, None] + from_capsules) @ weight
    assigned = torch.softmax(logits + agreed, -1) * MASKS[:, None, :, None]
    wanted = torch_squash(torch.einsum("btij,bijd->btjd", assigned, votes))
    close(found.capsules, wanted, 1e-12)
    for one, other in zip(*(torch.autograd.grad(made.sum(), case) for made in (found.capsules, wanted)), strict=True):
        close(one, other, 1e-11)


def test_one_plan_serves_all_positions_and_any_of_them():
    votes, guide, from_vote, from_capsule, weight = random_case()
    together = guided_routing(votes, guide, from_vote, from_capsule, weight, MASKS).capsules
    made = plan(votes, from_vote, from_capsule, MASKS)
    for position in range(guide.shape[1]):
        alone = route(guide[:, position, None], made, from_capsule, weight, MASKS).capsules
        close(alone[:, 0], together[:, position], 1e-12)


def test_zero_votes_and_sentences_of_padding_have_finite_gradients_in_float32():
    case = [torch.zeros_like(one, dtype=torch.bfloat16).requires_grad_() for one in random_case()]
    with torch.autocast("cpu", torch.bfloat16):
        found = guided_routing(*case, MASKS & torch.tensor([[True], [False]])).capsules
    assert found.dtype == torch.float32
    found.sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in case)


@pytest.mark.parametrize("numbers", [1, 20, 90, 1 << 18])
def test_energies_in_chunks_are_the_plain_formula(monkeypatch, numbers):
    """Chunks of one number, of some positions of a row, of some rows, of all."""
    monkeypatch.setattr(additive_energy, "CACHED_NUMBERS", numbers)
    generator = torch.Generator().manual_seed(1)
    shapes = [(2, 3, 5, 4), (2, 3, 2, 4), (3, 4)]
    query, key, weight = (torch.randn(*shape, generator=generator, dtype=FLOAT) for shape in shapes)
    given = [query.requires_grad_(), key.requires_grad_(), weight.requires_grad_()]
    found = additive_energies(*given)
    wanted = torch.einsum("bjtid,jd->bjti", torch.tanh(given[0][..., :, None, :] + given[1][..., None, :, :]), weight)
    close(found, wanted, 1e-12)
    upstream = torch.randn(found.shape, generator=generator, dtype=FLOAT)
    pairs = zip(torch.autograd.grad(found, given, upstream), torch.autograd.grad(wanted, given, upstream), strict=True)
    for one, other in pairs:
        close(one, other, 1e-11)


def test_routing_without_an_iteration_is_refused():
    with pytest.raises(ValueError, match="0 iterations: the first one is uniform"):
        hand_worked(iterations=0)
