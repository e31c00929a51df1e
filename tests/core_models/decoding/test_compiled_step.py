"""`compile: true` of a search: filled batches and a compiled step find what the others find."""

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import compiled_step
from core_models.decoding.inference import Inference
from core_models.settings import ConfigError, parse
from tests.core_models.laws import batch_of, random_sentences, random_system

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "names",
    [
        ["transformer"],
        *(
            pytest.param(names, marks=pytest.mark.exhaustive)
            for names in (["gdr-bow-bca"], ["rnnsearch"], ["transformer", "rnnsearch"])
        ),
    ],
)
@pytest.mark.slow
def test_a_compiled_search_finds_the_same(names, monkeypatch):
    """Compiled without the code generator, whose compiler a machine may lack."""
    torch._dynamo.reset()
    plain = torch.compile
    monkeypatch.setattr(compiled_step.torch, "compile", lambda step, mode: plain(step, backend="aot_eager"))
    inference = Inference([random_system(name) for name in names])
    batch = batch_of(inference.systems[0], random_sentences([5, 2, 3], 1))
    prefixes = [[4, 5], [], [7]]
    config = SearchConfig(beam=3, n_best=2, max_length=12)
    for given in (None, prefixes):
        eager = inference.search(batch, given, config, True)
        torch._dynamo.utils.counters.clear()
        compiled = inference.search(batch, given, config.model_copy(update={"compile": True}), True)
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] or given
        assert len(compiled) == len(eager) == 3
        for result, other in zip(eager, compiled, strict=True):
            assert [hypothesis.words for hypothesis in other.hypotheses] == [h.words for h in result.hypotheses]
            assert (other.tree.word, other.tree.fate) == (result.tree.word, result.tree.fate)


@pytest.mark.slow
def test_filling_stays_within_learned_positions(monkeypatch):
    torch._dynamo.reset()
    plain = torch.compile
    monkeypatch.setattr(compiled_step.torch, "compile", lambda step, mode: plain(step, backend="aot_eager"))
    inference = Inference([random_system("transformer:position_embedding=learned,max_positions=11")])
    batch = batch_of(inference.systems[0], random_sentences([10, 2], 1))  # eleven positions, rounded up to twelve
    config = SearchConfig(beam=2, max_length=40)
    eager, compiled = (
        inference.search(batch, None, config.model_copy(update={"compile": value}), False) for value in (False, True)
    )
    assert [one.hypotheses[0].words for one in compiled] == [one.hypotheses[0].words for one in eager]
    for value in (False, True):
        with pytest.raises(ConfigError, match="prefix of 12 pieces, and </s>, does not fit the 11 target"):
            inference.search(batch, [[4] * 12, []], config.model_copy(update={"compile": value}), False)


def test_a_search_that_keeps_finished_hypotheses_is_not_compiled():
    with pytest.raises(ConfigError, match="compile: a search that keeps finished"):
        parse(SearchConfig, {"compile": True, "finished_hypotheses": "keep"})
