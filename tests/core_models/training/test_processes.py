"""Several processes train what one process trains: the batches two ranks take at a step are those one accumulates."""

import os
import subprocess
import sys

from core_models.checkpoint import read_tensors
from core_models.text.batches import BatchLoader
from core_models.training.fit import fit
from core_models.training.log import read_events

PROGRAM = "import sys; from core_models.training.fit import fit; fit(sys.argv[1], device='cpu')"


def even_budget(text, epochs: int) -> int:
    """A token budget whose epochs have even numbers of batches: an odd number is halved for two ranks: another plan."""
    for budget in range(200, 600):
        loader = BatchLoader(text, budget, seed=1)
        if all(len(loader.plan(epoch)) % 2 == 0 for epoch in range(epochs)):
            return budget
    raise AssertionError("no budget gives even numbers of batches")


def test_two_ranks_end_with_the_weights_of_one_process(new_run, prepared, tmp_path):
    """Dropout is 0 and the ranks' batches hold unequal numbers of tokens; one number divides the whole step."""
    steps = {"max_steps": 12, "validate_every": 12, "batch_tokens": even_budget(prepared.split("train"), epochs=12)}
    system = "future-cost-2:dropout=0,attention_dropout=0"
    one = new_run("one", system, accumulate=2, **steps)
    two = new_run("two", system, **steps)
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node",
            "2",
            str(program),
            str(two),
        ],
        check=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    fit(one, device="cpu")

    alone, together = (
        [event for event in read_events(run / "training.jsonl") if event["event"] == "train"] for run in (one, two)
    )
    assert [event["tokens"] for event in together] == [event["tokens"] for event in alone]
    for mine, theirs in zip(alone, together, strict=True):
        assert abs(mine["main_loss"] - theirs["main_loss"]) < 1e-8 * mine["main_loss"]
    weights = [read_tensors(run / "weights.safetensors") for run in (one, two)]
    assert all((weights[0][name] - weights[1][name]).abs().max() < 1e-8 for name in weights[0])
