"""Sparsemax: the projection onto the simplex as another method finds it, and its gradient."""

import numpy as np
import pytest
import torch

from core_models.layers.sparsemax import sparsemax


def projected(energies):
    """The nearest point of the simplex: max(z - tau, 0) with tau found by halving, not by sorting."""
    low, high = energies.min() - 1, energies.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(energies - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(energies - low, 0)


@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_it_is_the_projection_onto_the_simplex(size):
    energies = np.random.default_rng(size).normal(size=(20, size)) * 2
    found = sparsemax(torch.tensor(energies)).numpy()
    np.testing.assert_allclose(found, [projected(row) for row in energies], atol=1e-9)
    assert size < 5 or (found == 0).any()


def test_masked_places_have_no_part():
    energies = torch.randn(6, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3
    mask = torch.tensor([[True, True, False, True, False]]).expand(6, 5).clone()
    mask[5] = False
    found = sparsemax(energies, mask)
    torch.testing.assert_close(found[:5, [0, 1, 3]], sparsemax(energies[:5, [0, 1, 3]]), atol=1e-12, rtol=0)
    assert not found[:, [2, 4]].any()
    assert not found[5].any()


def test_gradient_is_that_of_the_chosen():
    energies = torch.randn(4, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sparsemax, (energies,))
    mask = torch.zeros(4, 6, dtype=torch.bool)
    mask[0, :3] = True
    sparsemax(energies, mask).square().sum().backward()
    assert torch.isfinite(energies.grad).all()
    assert not energies.grad[1:].any()
