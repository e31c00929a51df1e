"""`compile: true`: compiled blocks train as the others do, on the same batches of few shapes."""

import pytest
import torch

from core_models.checkpoint import read_tensors
from core_models.config import TrainingConfig
from core_models.settings import ConfigError, parse
from core_models.training import compiled_blocks
from core_models.training import fit as fitting
from core_models.training.fit import fit

EXACT = "dropout=0,attention_dropout=0"


@pytest.mark.long
@pytest.mark.parametrize("system", ["transformer", "gdr-bow-bca", "document-transformer"])
def test_compiled_blocks_train_as_the_others_do(new_run, monkeypatch, system):
    """Dynamo and autograd's tracer, without the code generator, whose compiler a machine may lack."""
    compiled = []

    def compile_blocks(trained):
        compiled.append(compiled_blocks.compile_blocks(trained, backend="aot_eager"))

    settings = {"max_steps": 3, "batch_tokens": 200, "compile": True}
    runs = [new_run(name, f"{system}:{EXACT}", **settings) for name in ("compiled", "eager")]
    monkeypatch.setattr(fitting, "compile_blocks", compile_blocks)
    torch._dynamo.reset()  # what earlier tests compiled
    torch._dynamo.utils.counters.clear()
    fit(runs[0], device="cpu")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 5, "two sublayers and three of the decoder"
    assert not torch._dynamo.utils.counters["graph_break"]
    monkeypatch.setattr(fitting, "compile_blocks", lambda trained: None)
    fit(runs[1], device="cpu")
    weights, others = (read_tensors(run / "weights.safetensors") for run in runs)
    for name, values in weights.items():
        torch.testing.assert_close(others[name], values, atol=1e-9, rtol=0)
    assert compiled == [len([name for name in weights if name.endswith("attention.project.weight")])]


def test_sampling_and_compiled_blocks_are_refused_together():
    with pytest.raises(ConfigError, match="compile: batches are filled up"):
        parse(TrainingConfig, {"max_steps": 1, "compile": True, "init_from": "other", "adequacy": {"weight": 0.5}})
