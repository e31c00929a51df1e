"""GDR on RNNSearch (Zheng 2019, Table 1): capsules are one more term of the readout, and no state knows of them."""

import pytest
import torch

from core_models.system_builder import build
from core_models.text.batches import collate
from tests.core_models.laws import WORDS, exact, random_sentences, random_system


@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_capsules_are_a_term_of_the_readout(encoder):
    system = random_system(f"gdr-rnn:encoder={encoder},lambda_2=0.1")
    backbone, capsules = system.backbone, system.mechanisms["guided_capsules"]
    bare = build(exact(f"rnnsearch:encoder={encoder}"), WORDS).double().eval()
    bare.backbone.load_state_dict(backbone.state_dict())
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    with torch.no_grad():
        forced, plain = (one(one.encode(batch), batch.target_in, batch.target_mask) for one in (system, bare))
        torch.testing.assert_close(forced.view.guide, plain.view.guide)  # [s_t; c_t], the query
        own = forced.active.states["guided_capsules"]
        contents = torch.cat([own.notes["past"], own.notes["future"]], dim=-1)
        expected = torch.tanh(plain.main.vectors.atanh() + contents @ capsules.combine.map.weight.T)
    real = batch.target_mask
    torch.testing.assert_close(forced.main.vectors[real], expected[real], atol=1e-9, rtol=0)
