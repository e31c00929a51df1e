"""Entropy and diversity of assignments: closed forms, the paper's printed values at the uniform start, brute force."""

import itertools

import numpy as np
import pytest

from analyses import routing

UNIFORM = np.full((1, 4, 6, 512), 1 / 512)
HAND = np.array([[[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]]])


def test_the_uniform_start_is_what_the_paper_prints():
    assert routing.entropy(UNIFORM)[0] == pytest.approx(np.log(512))
    assert round(routing.entropy(UNIFORM)[0], 2) == 6.24
    assert routing.diversity(UNIFORM)[0] == pytest.approx(0, abs=1e-12)
    assert routing.effective_capsules(UNIFORM)[0] == pytest.approx(512)
    assert routing.entropy_as_printed(UNIFORM)[0] == pytest.approx(-np.log(512) / 512)


def test_by_hand():
    assert routing.entropy(HAND)[0] == pytest.approx(1.5 * np.log(2))  # 1.0397 nats
    cosines = [4 / 5, 3 / np.sqrt(10), 3 / np.sqrt(10)]  # of (2, 1), (1, 2) and (1, 1), quarters left out
    assert routing.diversity(HAND)[0] == pytest.approx(1 - np.mean(cosines))


def test_diversity_is_that_of_all_pairs():
    draw = np.random.default_rng(1)
    assignments = draw.dirichlet(np.ones(5), size=(3, 4, 6))
    wanted = []
    for iteration in assignments:
        cosines = [
            position[:, a] @ position[:, b] / np.linalg.norm(position[:, a]) / np.linalg.norm(position[:, b])
            for position in iteration
            for a, b in itertools.combinations(range(5), 2)
        ]
        wanted.append(1 - np.mean(cosines))
    np.testing.assert_allclose(routing.diversity(assignments), wanted, rtol=1e-12)


def test_an_output_that_gets_nothing_is_dead_and_an_input_that_chooses_has_no_entropy():
    one = np.zeros((2, 3, 2, 4))
    one[..., 0, 0] = one[..., 1, 1] = 1
    np.testing.assert_allclose(routing.entropy(one), 0, atol=1e-12)
    np.testing.assert_allclose(routing.effective_capsules(one), 1)
    np.testing.assert_allclose(routing.dead_share(one), 0.5)
    assert routing.dead_share(UNIFORM)[0] == 0
    assert np.isnan(routing.diversity(np.ones((1, 2, 3, 1)))[0])
