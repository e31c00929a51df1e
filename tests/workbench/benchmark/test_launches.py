"""Operators that a GPU launches kernels for."""

from dataclasses import replace

import pytest
import torch

from workbench.benchmark.launches import FEW_SENTENCES, CountOperators, count_launches

pytestmark = pytest.mark.long


def test_views_and_allocations_are_not_counted():
    values = torch.ones(2, 3)
    with CountOperators() as counted:
        torch.empty(3).copy_(values.view(6)[:3].t())
        torch.nn.functional.linear(values.to(torch.bfloat16), torch.ones(4, 3, dtype=torch.bfloat16))
    assert counted.calls == {"copy_": 1, "_to_copy": 1, "ones": 1, "mm": 1}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.slow
def test_each_layer_adds_as_much(precision):
    def launches(layers: int) -> dict[str, int]:
        return count_launches(f"transformer:preset=tiny,encoder_layers={layers},decoder_layers={layers}", precision)

    one, two, three = map(launches, (1, 2, 3))
    added = {what: two[what] - one[what] for what in one}
    assert {what: three[what] - two[what] for what in two} == added
    assert all(added[what] > 0 for what in ("forward", "backward", "beam_step"))
    assert (added["casts"] > 0) is (precision == "bfloat16")


@pytest.mark.parametrize("name", ["transformer", "em-routing", "gdr-bow-bca"])
def test_a_larger_batch_adds_nothing(name):
    larger = replace(FEW_SENTENCES, batch_tokens=80, batch_sentences=2)
    assert count_launches(f"{name}:preset=tiny", shape=larger) == count_launches(f"{name}:preset=tiny")
