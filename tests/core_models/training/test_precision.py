"""The precision of a training: what `auto` takes, that timing changes nothing, and that it is kept."""

import math

import pytest
import torch
import yaml

from core_models.config import TrainingConfig, read_config
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batch_loader import BatchLoader
from core_models.training.events import read_events
from core_models.training.fit import _optimizer, fit, precision_of_new
from core_models.training.precision import (
    FASTER,
    FEWEST_STEPS,
    TIMED_BATCHES,
    allow_tf32,
    choose,
    planned_steps,
    timed_precision,
)
from core_models.training.progress import read_progress
from tests.core_models.training.processes import start_ranks
from tests.fake_cuda import FakeCuda


def starts(run) -> list[dict]:
    return [event for event in read_events(run / "training.jsonl") if event["event"] == "start"]


@pytest.mark.parametrize(
    ("gain", "precision"), [(FASTER, "bfloat16"), (FASTER - 0.01, "float32"), (1, "float32"), (0.5, "float32")]
)
def test_bfloat16_is_taken_where_it_is_so_many_times_as_fast(gain, precision):
    lengths = [1.0, 4.0, 2.0]
    timed = choose({"float32": [gain * seconds for seconds in lengths], "bfloat16": lengths})
    assert timed.precision == precision
    assert timed.seconds == {"float32": 2 * gain, "bfloat16": 2.0}


def test_one_disturbed_step_decides_nothing():
    assert choose({"float32": [1.0, 100.0, 1.0], "bfloat16": [1.0, 1.0, 1.0]}).precision == "float32"


@pytest.mark.parametrize(
    ("float32", "bfloat16", "precision"),
    [(math.inf, 1.0, "bfloat16"), (1.0, math.inf, "float32"), (math.inf, math.inf, "float32")],
)
def test_what_does_not_fit_into_memory_is_not_taken(float32, bfloat16, precision):
    assert choose({"float32": [float32] * 3, "bfloat16": [bfloat16] * 3}).precision == precision


def test_a_short_training_is_not_timed(prepared):
    system = build("transformer:preset=tiny", len(prepared.target_vocabulary))
    loader = BatchLoader(prepared.split("train"), 300)
    timed = timed_precision(system, TrainingConfig(max_steps=FEWEST_STEPS - 1), loader, _optimizer)
    assert (timed.precision, timed.seconds) == ("float32", {})


@pytest.mark.parametrize("name", ["transformer", "em-routing", "rnnsearch"])
def test_timing_leaves_weights_gradients_and_random_numbers_as_they_were(prepared, name):
    system = build(f"{name}:preset=tiny", len(prepared.target_vocabulary))
    loader, training = BatchLoader(prepared.split("train"), 100), TrainingConfig(max_steps=FEWEST_STEPS)
    assert len(loader.plan(0)) >= TIMED_BATCHES
    weights, drawn = {key: value.clone() for key, value in system.state_dict().items()}, torch.get_rng_state()
    timed = timed_precision(system, training, loader, _optimizer)
    assert all(seconds > 0 for seconds in timed.seconds.values())
    assert set(timed.seconds) == {"float32", "bfloat16"}
    assert all(torch.equal(value, weights[key]) for key, value in system.state_dict().items())
    assert all(parameter.grad is None for parameter in system.parameters())
    assert torch.equal(torch.get_rng_state(), drawn)


@pytest.mark.parametrize(
    ("max_epochs", "max_steps", "accumulate"), [(3, None, 1), (3, None, 2), (3, 4, 1), (None, 7, 2)]
)
def test_planned_steps_are_those_that_are_trained(new_run, prepared, max_epochs, max_steps, accumulate):
    run = new_run("run", max_epochs=max_epochs, max_steps=max_steps, accumulate=accumulate, batch_tokens=700)
    training = read_config(run).training
    loader = BatchLoader(prepared.split("train"), training.batch_tokens, training.seed)
    assert planned_steps(loader, training) == fit(run, device="cpu").step


def test_a_run_is_resumed_in_the_precision_of_its_state(new_run):
    run = new_run("run", precision="bfloat16", max_steps=2)
    fit(run, device="cpu")
    assert read_progress(run / "state").precision == "bfloat16"
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["training"] |= {"precision": "auto", "max_steps": FEWEST_STEPS}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    fit(run, device="cpu", minutes=1e-6)
    assert [event["precision"] for event in starts(run)] == ["bfloat16"] * 2
    assert "step_seconds" not in starts(run)[1]


@pytest.mark.parametrize(
    ("kind", "tf32", "products"), [("cuda", True, "high"), ("cuda", False, "highest"), ("cpu", True, "highest")]
)
def test_tf32_is_for_cuda_devices_and_for_the_training_alone(kind, tf32, products):
    with allow_tf32(torch.device(kind), tf32):
        assert torch.get_float32_matmul_precision() == products
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("tf32", [True, False])
def test_the_precision_of_a_grid_is_timed_with_the_products_that_its_trainings_use(new_run, monkeypatch, tf32):
    asked = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    run = new_run("run", precision="auto", tf32=tf32, max_steps=1)
    with FakeCuda():
        precision_of_new(read_config(run), run, "cuda")
    assert ("high" in asked) == tf32


def test_a_grid_for_a_device_that_is_not_there_is_refused_with_a_sentence(new_run):
    run = new_run("run", precision="auto", max_steps=1)
    with pytest.raises(ConfigError, match="device 'cuda:7': PyTorch finds no such device here"):
        precision_of_new(read_config(run), run, "cuda:7")


def test_all_processes_take_the_precision_of_the_first(new_run):
    run = new_run("run", precision="auto", max_steps=FEWEST_STEPS, max_minutes=1e-6, batch_tokens=100)
    assert [rank.ended() for rank in start_ranks(run)] == [0, 0]
    (start,) = starts(run)
    assert start["processes"] == 2
    assert start["precision"] == read_progress(run / "state").precision
    assert set(start["step_seconds"]) == {"float32", "bfloat16"}
