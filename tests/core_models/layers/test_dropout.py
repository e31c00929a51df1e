"""Dropout: what is zeroed, how often, how the rest is scaled, and that the backward pass knows."""

import pytest
import torch

from core_models.layers.attention import attend
from core_models.layers.dropout import Dropout, dropout

pytestmark = pytest.mark.long


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_share_that_is_zeroed_is_within_four_standard_errors(probability, dtype):
    torch.manual_seed(1)
    numbers = 400_000
    dropped = (dropout(torch.ones(numbers, dtype=dtype), probability) == 0).double().mean().item()
    error = (probability * (1 - probability) / numbers) ** 0.5
    assert abs(dropped - probability) < 4 * error + 0.5 / 65536  # probabilities are rounded to 16 bits


def test_what_is_left_is_scaled_so_that_the_mean_stays():
    x = torch.full((1000, 7), 3.0)
    y = dropout(x, 0.25)
    assert torch.allclose(y[y != 0], torch.tensor(4.0))


def test_the_decisions_are_independent_of_their_place_in_a_random_number():
    torch.manual_seed(1)
    kept = (dropout(torch.ones(4 * 100_000), 0.5) != 0).double().view(-1, 4)
    correlations = torch.corrcoef(kept.t()) - torch.eye(4)
    assert correlations.abs().max() < 4 / 100_000**0.5


def test_the_gradient_passes_where_the_number_passed():
    x = torch.randn(50, 3, requires_grad=True)
    y = dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad, (y != 0) * 2.0)


def test_equal_random_states_drop_the_same_and_evaluation_drops_nothing():
    x, module = torch.randn(5, 3), Dropout(0.5)
    state = torch.get_rng_state()
    first = module(x)
    torch.set_rng_state(state)
    assert torch.equal(module(x), first)
    assert module.eval()(x) is x


def test_everything_and_nothing_can_be_dropped():
    x = torch.randn(5, 3)
    assert torch.equal(dropout(x, 1.0), torch.zeros_like(x))
    assert torch.equal(dropout(x, 0.0), x)


def test_attention_with_dropout_has_the_attention_without_as_its_mean():
    """And masked keys stay out: E[dropout(weights) V] = weights V (Vaswani 2017, section 5.4)."""
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64).unbind(0)
    mask = torch.tensor([True, True, False, True, False])
    draws = torch.stack([attend(query, key, value, mask, True, 0.3)[0] for _ in range(4000)])
    exact = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask & torch.ones(5, 5).bool().tril())
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - exact).abs() <= 5 * error + 1e-12).all()
