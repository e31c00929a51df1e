"""Pieces are the whole: values and gradients of a function of positions, whatever the size of a piece."""

import pytest
import torch

from core_models.layers import chunked_recompute
from core_models.layers.chunked_recompute import in_pieces
from core_models.routing.algorithms import em_routing

FLOAT = torch.float64


def capsules(votes, active, beta_a, beta_u):
    return em_routing(votes, active, beta_a, beta_u).capsules


def case(positions: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(positions, 3, 4, 2), (positions, 3), (4,), (4,)]
    return [torch.rand(*shape, generator=generator, dtype=FLOAT).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("numbers", [1, 60, 1 << 17])
@pytest.mark.parametrize("positions", [0, 1, 7])
def test_routing_in_pieces_is_routing(monkeypatch, numbers, positions):
    """Pieces of one position, of two, of all."""
    monkeypatch.setattr(chunked_recompute, "CACHED_NUMBERS", numbers)
    given = case(positions)
    found, wanted = in_pieces(capsules, given[:2], given[2:]), capsules(*given)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-14)
    upstream = torch.linspace(-1, 1, wanted.numel(), dtype=FLOAT).view(wanted.shape)
    for one, other in zip(
        torch.autograd.grad(found, given, upstream), torch.autograd.grad(wanted, given, upstream), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_only_what_is_asked_for_is_derived():
    votes, active, beta_a, beta_u = case(5)
    for one in (votes, beta_u):
        one.requires_grad_(False)
    (wanted,) = torch.autograd.grad(capsules(votes, active, beta_a, beta_u).sum(), [beta_a])
    (found,) = torch.autograd.grad(in_pieces(capsules, [votes, active], [beta_a, beta_u]).sum(), [beta_a])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-13)
    with torch.no_grad():
        assert not in_pieces(capsules, [votes, active], [beta_a, beta_u]).requires_grad


def test_what_is_kept_for_the_backward_pass_is_what_was_given(monkeypatch):
    """Routing alone keeps many times its votes."""
    monkeypatch.setattr(chunked_recompute, "CACHED_NUMBERS", 100)
    given, kept = case(40), []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one.numel()) or one, lambda one: one):
        in_pieces(capsules, given[:2], given[2:])
    assert sum(kept) == sum(one.numel() for one in given)
