"""A loss or a gradient that is not finite on one of two ranks: both skip that step, and say whose loss it was."""

import json
import math
import time

import pytest
import torch

from core_models.checkpoint import read_tensors
from core_models.training.events import read_events
from core_models.training.gradient_check import Update
from core_models.training.log import Window
from core_models.training.progress import read_progress
from tests.core_models.training.processes import BrokenLosses, start_ranks

SYSTEM = "transformer:dropout=0,attention_dropout=0"


def test_what_one_rank_cannot_use_all_skip(new_run):
    """At step 2 its loss and gradient are NaN; at step 4 the loss alone is infinite and the gradient is finite."""
    run = new_run("run", SYSTEM, max_steps=6, log_every=2, validate_every=6)
    ranks = start_ranks(run, (BrokenLosses("rank-0"), BrokenLosses("rank-1", ((2, "gradient"), (4, "loss")))))
    assert [rank.ended() for rank in ranks] == [0, 0]

    events = list(read_events(run / "training.jsonl"))
    skipped = [event for event in events if event["event"] == "skipped"]
    assert [(event["step"], event["processes"], event["main_loss"]) for event in skipped] == [
        (2, [1], "nan"),
        (4, [1], "inf"),
    ]
    assert math.isnan(float(skipped[0]["gradient_norm"]))
    assert math.isfinite(float(skipped[1]["gradient_norm"]))
    for rank in (0, 1):  # weights and the optimiser's moments changed at the other steps only
        changed = json.loads((run / f"rank-{rank}.json").read_text())
        assert changed == {str(step): step not in (2, 4) for step in range(1, 7)}
    weights = [read_tensors(run / f"rank-{rank}.safetensors") for rank in (0, 1)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    lines = [event for event in events if event["event"] == "train"]
    assert [event["step"] for event in lines] == [2, 4, 6]
    assert all(math.isfinite(event["main_loss"]) for event in lines)


def test_ten_in_a_row_stop_every_rank_with_the_reason(new_run):
    run = new_run("run", SYSTEM, max_steps=40, save_every=3)
    bad = BrokenLosses("rank-1", tuple((step, "gradient") for step in (1, *range(3, 20))))
    assert [rank.ended() for rank in start_ranks(run, (BrokenLosses("rank-0"), bad))] == [3, 3]
    for rank in (0, 1):
        message = (run / f"error-{rank}.txt").read_text()
        assert "10 steps in a row were skipped" in message
        assert "(at step 12: the loss of process 1 is not finite); lower learning_rate" in message
        assert message.endswith(f"workbench resume {run}")
    skipped = [event["step"] for event in read_events(run / "training.jsonl") if event["event"] == "skipped"]
    assert skipped == [1, *range(3, 13)]
    assert (read_progress(run / "state").step, read_progress(run / "state").skipped) == (12 - 3, 7)  # counted on later


@pytest.mark.parametrize(
    ("loss", "norm", "broken", "problem"),
    [
        (2.0, 1.0, (), ""),
        (2.0, math.inf, (), "the gradient is not finite"),
        (math.nan, 1.0, (0, 3), "the loss of process 0, 3 is not finite"),
        (math.inf, 1.0, (), "the sum of the processes' losses is not finite"),
    ],
)
def test_what_is_wrong_with_a_step(loss, norm, broken, problem):
    assert Update(1, {"main": loss}, 10, norm, 0.1, broken).problem == problem


def test_a_line_of_the_log_is_the_mean_of_its_steps():
    window = Window({})
    window.add(Update(1, {"main": 30.0, "bow": 3.0}, tokens=10, gradient_norm=1.0, learning_rate=0.1))
    window.add(Update(2, {"main": 10.0, "bow": 7.0}, tokens=30, gradient_norm=3.0, learning_rate=0.1))
    line = window.take()
    assert (line["main_loss"], line["bow_loss"], line["gradient_norm"]) == (1.0, 0.25, 2.0)
    assert window.take() == {}


def test_the_speed_of_a_log_line_leaves_validations_out(monkeypatch):
    now = iter([0.0, 1.0, 7.0, 10.0, 10.0])  # begun, a validation from 1 to 7, taken
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    window = Window({})
    with window.paused():
        pass
    window.add(Update(1, {"main": 30.0}, tokens=100, gradient_norm=1.0, learning_rate=0.1))
    assert window.take()["tokens_per_second"] == 25
