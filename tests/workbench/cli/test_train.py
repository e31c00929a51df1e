"""The command line that trains: what is stopped is resumed to the same weights, and an average is a mean."""

import os
import signal
import subprocess
import sys
import time

import pytest

import core_models
from core_models.checkpoint import read_tensors
from tests.workbench.cli.test_commands import invoke
from workbench.store.runs import open_run

STEPS = (
    "--config",
    "max_steps=4",
    "--config",
    "validate_every=2",
    "--config",
    "log_every=1",
    "--config",
    "batch_tokens=256",
    "--config",
    "early_stopping.patience=1000000",
    "--device",
    "cpu",
)


@pytest.mark.slow
def test_training_that_ran_out_of_time_is_resumed_to_the_weights_of_an_uninterrupted_one(prepared, tmp_path):
    common = ("future-cost-1:preset=tiny,weight=0.7", "--data", prepared.folder, "--search", "beam=2", *STEPS)
    said = invoke("train", *common, "--out", tmp_path / "parts", "--max-minutes", "0.000001")
    assert f"not finished: workbench resume {tmp_path / 'parts'}" in said
    assert "all steps done" in invoke("resume", tmp_path / "parts", "--device", "cpu")
    invoke("train", *common, "--out", tmp_path / "whole")
    assert (tmp_path / "parts" / "weights.safetensors").read_bytes() == (
        tmp_path / "whole" / "weights.safetensors"
    ).read_bytes()
    config = open_run(tmp_path / "whole").config
    assert (config.search.beam, config.training.max_epochs, config.training.max_steps) == (2, None, 4)

    invoke(
        "train",
        *common,
        "--out",
        tmp_path / "after",
        "--init-from",
        f"{tmp_path / 'whole'}@4",
        "--config",
        "early_stopping.patience=3",
    )
    assert open_run(tmp_path / "after").config.training.early_stopping.patience == 3


def test_an_average_is_the_mean_of_the_latest_checkpoints(prepared, tmp_path):
    run = tmp_path / "run"
    invoke(
        "train", "transformer:preset=tiny", "--data", prepared.folder, "--out", run, *STEPS, "--config", "keep_last=3"
    )
    (run / "checkpoints" / "step-1000000.safetensors").write_bytes(
        (run / "checkpoints" / "step-000002.safetensors").read_bytes()
    )
    before = (run / "weights.safetensors").read_bytes()
    said = invoke("runs", "average", run, "--last", 2)
    assert "step-000004, step-1000000" in said, "by step, not by name"
    two, four, mean = (
        read_tensors(run / "checkpoints" / f"{name}.safetensors")
        for name in ("step-000002", "step-000004", "average-2")
    )
    assert all((mean[name] - (two[name] + four[name]) / 2).abs().max() < 1e-6 for name in mean)
    assert (run / "weights.safetensors").read_bytes() == before
    invoke("runs", "average", run, "--last", 2, "--use")
    assert (run / "weights.safetensors").read_bytes() == (run / "checkpoints" / "average-2.safetensors").read_bytes()
    assert core_models.load(f"{run}@average-2").systems
    assert "asked for" not in said
    assert "; 9 were asked for, and no more are there" in invoke("runs", "average", run, "--last", 9)


@pytest.mark.slow
def test_ctrl_c_during_training_leaves_a_run_that_can_be_resumed(prepared, tmp_path):
    run = tmp_path / "run"
    arguments = [
        "train",
        "transformer:preset=tiny",
        "--data",
        str(prepared.folder),
        "--out",
        str(run),
        "--device",
        "cpu",
        "--config",
        "max_steps=1000000",
        "--config",
        "validate_every=3",
        "--config",
        "log_every=1",
        "--config",
        "batch_tokens=256",
        "--config",
        "early_stopping.patience=1000000",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 120
    while not list(run.glob("state/step-*/progress.json")):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "can be resumed" in said.decode()
    assert "Traceback" not in said.decode()
    assert not [path for path in run.rglob("*") if path.name.endswith(".part") or ".unfinished" in path.name]
    reached = max(event["step"] for event in open_run(run).events())
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 1000000", f"max_steps: {reached + 2}"))
    assert "all steps done" in invoke("resume", run, "--device", "cpu")
    steps = [event["step"] for event in open_run(run).events() if event["event"] == "train"]
    assert steps == list(range(1, reached + 3))
