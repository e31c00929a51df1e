"""Decoding in eight bits: a product's error is that of its rounding, and every system still says nearly the same."""

import pytest
import torch

from core_models.decoding.quantization import Int8Linear, quantized
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from core_models.text.batches import collate

pytestmark = pytest.mark.long

SOURCES = [[5, 9, 4, 3], [7, 8, 3]]


def test_a_product_of_whole_numbers_up_to_127_is_exact():
    torch.manual_seed(1)
    weight, x = torch.randint(-127, 128, (9, 16)).float(), torch.randint(-63, 64, (5, 16)).float()
    weight[:, 0], x[:, 0], x[:, 1] = 127, 63, -64  # so that one step of either scale is one
    bias = torch.arange(9.0)
    torch.testing.assert_close(Int8Linear(weight, bias)(x), x @ weight.T + bias, rtol=1e-5, atol=1e-2)


def test_the_error_of_a_product_is_that_of_rounding():
    torch.manual_seed(1)
    weight, x = torch.randn(300, 256), torch.randn(40, 256)
    wanted = x @ weight.T
    steps = weight.abs().amax(1) / 127, (x.max() - x.min()) / 127  # a row's, and the vectors'
    noise = ((steps[0] ** 2 / 12) * x.square().sum(1).mean() + steps[1] ** 2 / 12 * weight.square().sum(1)).mean()
    found = (Int8Linear(weight, None)(x) - wanted).square().mean()
    assert found.sqrt() == pytest.approx(noise.sqrt().item(), rel=0.1)


@pytest.mark.parametrize("name", catalogue())
def test_every_system_steps_nearly_as_before(name):
    torch.manual_seed(1)
    system = build(f"{name}:preset=tiny", 30).eval()
    low = quantized(system)
    batch, words = collate(SOURCES), torch.tensor([[2], [2]])
    with torch.inference_mode():
        wanted, found = (one.step(words, one.start(one.encode(batch)))[0].values for one in (system, low))
    error = (found - wanted).norm() / (wanted - wanted.mean()).norm()
    assert 0 < error < 0.1


def test_what_has_no_eight_bits_is_refused():
    with pytest.raises(ConfigError, match=r"int8 is for float32 weights on a CPU, these are torch.float64 on cpu"):
        quantized(build("transformer:preset=tiny", 30).double())
    with pytest.raises(ConfigError, match=r"these are torch.float32 on meta; take full or bfloat16"):
        quantized(build("transformer:preset=tiny", 30).to("meta"))
