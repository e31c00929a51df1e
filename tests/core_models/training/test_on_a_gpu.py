"""Training on a pretended GPU (`tests/fake_cuda.py`): what the host waits for in a step, and what is trained."""

from collections import Counter

import pytest
import torch

from core_models.checkpoint import read_tensors
from core_models.training.fit import fit
from tests.fake_cuda import CUDA, FakeCuda

STEP = "core_models.training.loop.Loop.step reads a list"
BATCH = {"core_models.text.batches.Batch.to to": 6}  # its tensors, from memory that is not pinned
CONTEXT = {"core_models.text.batches.Context.to to": 3}
EXACT = "dropout=0,attention_dropout=0"


def trained_on_gpu(run) -> tuple[Counter[str], Counter[str]]:
    """What the host waited for and uploaded in a whole training."""
    with FakeCuda() as gpu:
        fit(run, device="cuda")
    return gpu.waits, gpu.uploads


@pytest.mark.parametrize(
    ("system", "uploads"),
    [("transformer", BATCH), ("gdr-bow-bca", BATCH), ("pfrnn-loss", BATCH), ("qcn-reg", BATCH | CONTEXT)],
)
def test_a_step_waits_once_and_trains_as_on_the_cpu(new_run, monkeypatch, system, uploads):
    """Trainings of one step and of three differ by two steps: start, validation and saving are the same."""
    settings = {"validate_every": 100, "log_every": 1}
    fit(host := new_run("host", f"{system}:{EXACT}", max_steps=3, **settings), device="cpu")
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    runs = [new_run(f"gpu-{steps}", f"{system}:{EXACT}", max_steps=steps, **settings) for steps in (1, 3)]
    (waits, moved), (more_waits, more_moved) = map(trained_on_gpu, runs)
    assert more_waits - waits == {STEP: 2}
    assert more_moved - moved == {name: 2 * count for name, count in uploads.items()}
    weights, others = (read_tensors(run / "weights.safetensors") for run in (host, runs[1]))
    for name, values in weights.items():
        torch.testing.assert_close(others[name], values, atol=1e-6, rtol=0)
