"""`compile` of a training: compiled parts train as the others do, on the same batches."""

import pytest
import torch

from core_models.checkpoint import read_tensors
from core_models.config import TrainingConfig
from core_models.settings import ConfigError, parse
from core_models.training import compilation
from core_models.training import fit as fitting
from core_models.training.fit import fit

EXACT = "dropout=0,attention_dropout=0"


@pytest.mark.long
@pytest.mark.parametrize(
    ("system", "which", "graphs"),
    [
        ("transformer", True, 5),  # two sublayers of the encoder and three of the decoder
        pytest.param("gdr-bow-bca", True, 5, marks=pytest.mark.exhaustive),
        pytest.param("document-transformer", True, 5, marks=pytest.mark.exhaustive),
        ("em-routing:encoder_layers=2,decoder_layers=2", "routing", 1),
        pytest.param("head-aggregation", "routing", 1, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.slow
def test_compiled_parts_train_as_the_others_do(new_run, monkeypatch, system, which, graphs):
    """Dynamo and autograd's tracer, without the code generator, whose compiler a machine may lack."""
    compiled = []

    def compile_parts(trained, which):
        compiled.append(compilation.compile_parts(trained, which, backend="aot_eager"))

    settings = {"max_steps": 3, "batch_tokens": 200, "compile": which}
    exact = f"{system}{',' if ':' in system else ':'}{EXACT}"
    runs = [new_run(name, exact, **settings) for name in ("compiled", "eager")]
    monkeypatch.setattr(fitting, "compile_parts", compile_parts)
    torch._dynamo.reset()  # what earlier tests compiled
    torch._dynamo.utils.counters.clear()
    fit(runs[0], device="cpu")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= graphs
    assert compiled[0] >= graphs
    monkeypatch.setattr(fitting, "compile_parts", lambda trained, which: None)
    fit(runs[1], device="cpu")
    weights, others = (read_tensors(run / "weights.safetensors") for run in runs)
    for name, values in weights.items():
        torch.testing.assert_close(others[name], values, atol=1e-9, rtol=0)


def test_sampling_and_compiled_blocks_are_refused_together():
    with pytest.raises(ConfigError, match="compile: batches are filled up"):
        parse(TrainingConfig, {"max_steps": 1, "compile": True, "init_from": "other", "adequacy": {"weight": 0.5}})
