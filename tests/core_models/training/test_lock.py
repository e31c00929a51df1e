"""Two trainings of one run at once: the second is refused and told who is at it; a killed one holds nothing."""

import os
import signal
import time

import pytest

from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.loop import TrainingError
from tests.core_models.training.processes import Moment, Rank, start_ranks, train

SYSTEM = "transformer:heads=1,ffn_dim=32,decoder_layers=1"
ENDLESS = {"max_steps": 100_000, "keep_last": 0, "log_every": 1}


def begun(run) -> None:
    """Wait until a training of the run has logged a step."""
    deadline = time.monotonic() + 200
    while not any(event["event"] == "train" for event in read_events(run / "training.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_second_training_is_told_who_is_at_it_and_changes_nothing(new_run):
    run = new_run("run", SYSTEM, **ENDLESS)
    first = Rank(run)
    try:
        begun(run)
        with pytest.raises(TrainingError) as refusal:
            fit(run, device="cpu", minutes=1e-9)
        process = str(refusal.value).removeprefix(f"{run}: process ").split()[0]
        assert " is training this run, and two trainings would mix their files" in str(refusal.value)
        assert str(refusal.value).endswith(f"then go on: workbench resume {run}")
        os.kill(int(process), signal.SIGKILL)  # so it is the number of the first
        assert first.ended() == -signal.SIGKILL
    finally:
        first.kill()
    starts = [event for event in read_events(run / "training.jsonl") if event["event"] == "start"]
    assert len(starts) == 1
    assert fit(run, device="cpu", minutes=1e-9).step >= 1


def test_ranks_of_one_training_share_a_run_and_those_of_a_second_are_all_refused(new_run):
    run = new_run("run", SYSTEM, **ENDLESS)
    ranks = start_ranks(run)
    try:
        begun(run)
        assert [rank.ended() for rank in start_ranks(run)] == [3, 3]
    finally:
        for rank in ranks:
            rank.kill()
    messages = [(run / f"error-{rank}.txt").read_text() for rank in (0, 1)]
    assert messages[0] == messages[1]
    assert messages[0].startswith(f"{run}: process ")


def test_a_training_that_was_killed_or_has_ended_holds_nothing(new_run):
    run = new_run("run", SYSTEM, max_steps=3, save_every=1)
    assert train(run, Moment(2)) == -signal.SIGKILL
    assert train(run) == 0
    assert (run / ".training.lock").read_text() == ""
    assert fit(run, device="cpu").finished
