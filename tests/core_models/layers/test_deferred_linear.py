"""Linear maps in a recurrence: values and gradients of the plain maps, however often and by whomever they are used."""

import pytest
import torch
from torch import nn

from core_models.layers.deferred_linear import DeferredProducts


def recurrence(first: nn.Linear, second: nn.Linear, x: torch.Tensor, steps: int, linear) -> torch.Tensor:
    """h <- tanh(A h + x) + 0.1 B h, so many times over."""
    total = torch.zeros_like(x)
    for _ in range(steps):
        one, two = linear([first, second], total)
        total = torch.tanh(one + x) + 0.1 * two
    return total


def maps() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(1)
    return nn.Linear(4, 4, dtype=torch.float64), nn.Linear(4, 4, bias=False, dtype=torch.float64)


@pytest.mark.parametrize("steps", [1, 3, 7, 12, 15])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4)])
def test_values_and_gradients_are_the_plain_ones(steps, shape):
    first, second = maps()
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    tensors = (x, first.weight, first.bias, second.weight)
    expected = recurrence(first, second, x, steps, lambda both, h: tuple(one(h) for one in both))
    gradients = torch.autograd.grad(expected.sin().sum(), tensors)
    found = recurrence(first, second, x, steps, DeferredProducts(7))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    for one, other in zip(torch.autograd.grad(found.sin().sum(), tensors), gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


def test_one_map_alone_and_without_gradients():
    first, _ = maps()
    x, linear = torch.randn(3, 4, dtype=torch.float64), DeferredProducts(4)
    with torch.no_grad():
        torch.testing.assert_close(linear([first], x)[0], first(x))
    first.requires_grad_(False)
    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad(DeferredProducts(4)([first], x)[0].sum(), [x])
    torch.testing.assert_close(gradient, first.weight.sum(0).expand(3, 4))


def test_a_graph_may_be_gone_through_again():
    first, second = maps()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    found = recurrence(first, second, x, 4, DeferredProducts(4))
    one = torch.autograd.grad(found.sum(), [x], retain_graph=True)
    weights = [torch.autograd.grad(found.sum(), [first.weight], retain_graph=True)[0] for _ in range(2)]
    torch.testing.assert_close(weights[0], weights[1])
    torch.testing.assert_close(torch.autograd.grad(found.sum(), [x])[0], one[0])


def test_parts_that_nothing_reads_cost_nothing():
    """Later positions of a block, and positions whose image is thrown away, have no part in the gradient."""
    first, _ = maps()
    linear, x = DeferredProducts(4), torch.randn(2, 4, dtype=torch.float64)
    used, thrown = linear([first], x)[0], linear([first], 5 * x)[0]
    (gradient,) = torch.autograd.grad(used.sum(), [first.weight])
    torch.testing.assert_close(gradient, x.sum(0).expand(4, 4))
    assert thrown.shape == used.shape


def test_under_autocast_products_are_of_the_lower_type():
    first = nn.Linear(4, 4)
    x = torch.randn(3, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        late, plain = DeferredProducts(4)([first], x)[0], first(x)
    assert late.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(late, plain)
    gradients = [torch.autograd.grad(one.float().sum(), [first.weight, first.bias])[0] for one in (late, plain)]
    torch.testing.assert_close(gradients[0], gradients[1], atol=2e-2, rtol=2e-2)
    assert gradients[0].dtype == torch.float32
