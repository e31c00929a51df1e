"""Routing of context words: the hand-worked case, a NumPy implementation with a loop for every sum, what is bounded."""

import numpy as np
import pytest
import torch

from core_models.routing.query_guided import correlations, query_guided_routing, shared_dynamic_routing
from tests.core_models.routing.test_algorithms_numpy import softmax, squash

FLOAT = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


WORDS = tensor([1, 0, 2], [0, 3, 1], [5, 5, 4])[None]  # the third is padding
MASK = torch.tensor([[True, True, False]])
QUERY = tensor(2, 0, 1)[None]
TRANSFORMS = torch.stack([torch.eye(3, dtype=FLOAT), tensor([0, 1, 0], [2, 0, 0], [0, 0, -1])])


def close(found, wanted, tolerance=1e-6):
    torch.testing.assert_close(found, torch.as_tensor(wanted, dtype=found.dtype), rtol=0, atol=tolerance)


def test_by_hand():
    """Two real words, two capsules, two iterations: numbers of the specification, to six decimals."""
    found = query_guided_routing(WORDS, QUERY, TRANSFORMS, MASK, iterations=2)
    assert (found.assignments.shape, found.correlations.shape, found.queries.shape) == (
        (2, 1, 3, 2), (2, 1, 3, 2), (3, 1, 2, 3),
    )  # fmt: skip
    close(found.assignments[0, 0], [[0.5, 0.5], [0.5, 0.5], [0, 0]])
    close(found.correlations[0, 0], [[0.462117, 0.462117], [-0.753922, -0.753922], [0, 0]])
    close(found.assignments[1, 0], [[0.520968, 0.479032], [0.143663, 0.856337], [0, 0]])
    close(found.correlations[1, 0], [[0.607753, 0.063920], [-0.760587, -0.661953], [0, 0]])
    close(found.capsules[0], [[0.365706, -0.599651, 0.531528], [0.492952, 0.229485, -0.541129]])
    close(found.queries[-1, 0], [[0.776989, -0.374358, 0.679191], [0.613485, 0.198727, -0.166367]])


def test_correlation_by_hand():
    one, other = tensor([1, 2, 3]), tensor([2, 4, 7])
    close(correlations(one, other), [[0.993399]])
    close(correlations(one, other, "eq7"), [[0.160872]])


def test_the_literal_correlation_is_never_the_farther_from_zero():
    one, other = torch.randn(2, 40, 6, generator=torch.Generator().manual_seed(1), dtype=FLOAT)
    true, literal = correlations(one, other), correlations(one, other, "eq7")
    close(true, np.corrcoef(one.numpy(), other.numpy())[:40, 40:])
    assert (literal.abs() <= true.abs() + 1e-12).all()
    assert (literal.abs() < true.abs() - 1e-3).any()


def correlation(one, other, literal):
    """Equation 7 and what it should have been, of two vectors."""
    a, b = one - sum(one) / len(one), other - sum(other) / len(other)
    lengths = (one, other) if literal else (a, b)
    return float(a @ b) / np.sqrt((sum(lengths[0] ** 2) + 1e-8) * (sum(lengths[1] ** 2) + 1e-8))


def by_algorithm_1(words, query, transforms, distances, iterations, literal):
    """Yang 2019, Algorithm 1, line by line, of one sentence without padding; transforms [G, m, D, D]."""
    count, capsules = len(words), transforms.shape[1]
    votes = np.array([[words[i] @ transforms[distances[i], j] for j in range(capsules)] for i in range(count)])
    logits, queries = np.zeros((count, capsules)), [np.array(query) for _ in range(capsules)]
    aligned = np.array([[np.tanh(correlation(u, q, literal)) for q in queries] for u in words])
    told = []
    for _ in range(iterations):
        coupling = np.array([softmax(row) for row in logits])
        found = [squash(sum((coupling[i, j] + aligned[i, j]) * votes[i, j] for i in range(count)))
                 for j in range(capsules)]  # fmt: skip
        told.append((coupling, aligned, np.array(queries)))
        logits = logits + np.array(
            [[aligned[i, j] * float(votes[i, j] @ found[j]) for j in range(capsules)] for i in range(count)]
        )
        queries = [(query + capsule) / 2 for query, capsule in zip(queries, found, strict=True)]
        aligned = np.array([[np.tanh(correlation(u, q, literal)) for q in queries] for u in words])
    return np.array(found), told, np.array(queries)


@pytest.mark.parametrize("kind", ["pearson", "eq7"])
@pytest.mark.parametrize("iterations", [1, 2, 4, 6])
@pytest.mark.parametrize("apart", [False, True], ids=["shared", "per distance"])
def test_random_cases_agree_with_numpy(kind, iterations, apart):
    draw = np.random.default_rng(iterations)
    for case in range(5):
        count, capsules, width, groups = draw.integers(1, 7), draw.integers(1, 6), draw.integers(2, 9), 3
        words, query = draw.normal(size=(count, width)), draw.normal(size=width) * 3
        transforms = draw.normal(size=(groups if apart else 1, capsules, width, width))
        distances = draw.integers(0, groups, size=count) if apart else np.zeros(count, dtype=int)
        wanted, told, last = by_algorithm_1(words, query, transforms, distances, iterations, kind == "eq7")
        padded = torch.tensor(np.concatenate([words, draw.normal(size=(case, width))]))[None]
        mask = (torch.arange(count + case) < count)[None]
        groups_of = torch.tensor(np.concatenate([distances, np.ones(case, dtype=int)]))[None]
        found = query_guided_routing(
            padded, torch.tensor(query)[None], torch.tensor(transforms if apart else transforms[0]), mask,
            iterations, kind, groups=groups_of if apart else None,
        )  # fmt: skip
        np.testing.assert_allclose(found.capsules[0].numpy(), wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.queries[-1, 0].numpy(), last, rtol=1e-6, atol=1e-7)
        for number, (coupling, aligned, queries) in enumerate(told):
            np.testing.assert_allclose(found.assignments[number, 0, :count].numpy(), coupling, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(found.correlations[number, 0, :count].numpy(), aligned, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(found.queries[number, 0].numpy(), queries, rtol=1e-6, atol=1e-7)
        assert not found.assignments[:, 0, count:].any()
        assert not found.correlations[:, 0, count:].any()


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_plain_routing_agrees_with_numpy(iterations):
    draw = np.random.default_rng(iterations)
    words, transforms = draw.normal(size=(5, 4)), draw.normal(size=(3, 4, 4))
    votes = np.einsum("id,jde->ije", words, transforms)
    logits = np.zeros((5, 3))
    for _ in range(iterations):
        coupling = np.array([softmax(row) for row in logits])
        capsules = np.array([squash(sum(coupling[i, j] * votes[i, j] for i in range(5))) for j in range(3)])
        logits = logits + np.einsum("ije,je->ij", votes, capsules)
    mask = torch.tensor([[True] * 5 + [False] * 2])
    padded = torch.tensor(np.concatenate([words, np.ones((2, 4))]))[None]
    found = shared_dynamic_routing(padded, torch.tensor(transforms), mask, iterations)
    np.testing.assert_allclose(found.capsules[0].numpy(), capsules, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.assignments[-1, 0, :5].numpy(), coupling, rtol=1e-6, atol=1e-7)


def random_case(dtype=FLOAT, sentences=3, words=6, width=8, capsules=4):
    generator = torch.Generator().manual_seed(2)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    mask = torch.arange(words) < torch.tensor([words, 2, 0])[:, None]
    return draw(sentences, words, width), draw(sentences, width), draw(capsules, width, width), mask


def test_no_words_make_capsules_of_zero():
    found = query_guided_routing(*random_case())
    assert not found.capsules[2].any()
    assert found.capsules[:2].abs().sum() > 0


@pytest.mark.parametrize("kind", ["pearson", "eq7"])
def test_gradients_are_finite_where_nothing_varies(kind):
    """Constant words, constant queries, all of them zero, and sentences without words."""
    words, query, transforms, mask = random_case(torch.float32)
    words[0], query[0], query[1] = 0.7, -0.3, 0
    words[1] = 0
    for given in (words, query, transforms):
        given.requires_grad_()
    found = query_guided_routing(words, query, transforms, mask, correlation=kind)
    (found.capsules.sum() + found.correlations.sum() + found.queries.sum()).backward()
    assert all(torch.isfinite(given.grad).all() for given in (words, query, transforms))


def test_detached_only_the_last_iteration_is_learned_through():
    words, query, transforms, mask = random_case()
    gradients = {}
    for detach in (False, True):
        given = transforms.clone().requires_grad_()
        found = query_guided_routing(words, query, given, mask, detach=detach)
        found.capsules.square().sum().backward()
        gradients[detach] = given.grad
        close(found.capsules, query_guided_routing(words, query, transforms, mask).capsules, 1e-12)
    last = query_guided_routing(words, query, transforms, mask)
    given = transforms.clone().requires_grad_()
    weights = last.assignments[-1] + last.correlations[-1]
    from core_models.routing.algorithms import squash as torch_squash

    torch_squash(torch.einsum("bnm,bnd,mde->bme", weights, words, given)).square().sum().backward()
    close(gradients[True], given.grad, 1e-10)
    assert (gradients[False] - gradients[True]).abs().max() > 1e-3


def test_autocast_stays_out():
    words, query, transforms, mask = random_case(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = query_guided_routing(words.bfloat16(), query.bfloat16(), transforms.bfloat16(), mask)
    assert found.capsules.dtype == found.correlations.dtype == torch.float32
    wanted = query_guided_routing(*(one.bfloat16().float() for one in (words, query, transforms)), mask)
    close(found.capsules, wanted.capsules, 1e-6)


def largest_tensor(function):
    """Numbers of the largest tensor that a call makes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            made = operator(*args, **(kwargs or {}))
            for one in made if isinstance(made, tuple | list) else (made,):
                if isinstance(one, torch.Tensor):
                    self.most = max(self.most, one.numel())
            return made

    with Watch() as watch:
        function()
    return watch.most


def test_no_votes_are_made():
    """300 words, 8 capsules, width 16: no tensor has as many numbers as all votes, nor half of them."""
    words, query = torch.randn(4, 300, 16), torch.randn(4, 16)
    transforms, mask = torch.randn(8, 16, 16), torch.ones(4, 300, dtype=torch.bool)
    votes = 4 * 300 * 8 * 16
    assert largest_tensor(lambda: query_guided_routing(words, query, transforms, mask)) < votes / 2
    assert largest_tensor(lambda: shared_dynamic_routing(words, transforms, mask)) < votes / 2
    assert largest_tensor(lambda: torch.einsum("bnd,mde->bnme", words, transforms)) >= votes
