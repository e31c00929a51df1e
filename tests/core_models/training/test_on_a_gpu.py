"""Training on a pretended GPU (`tests/fake_cuda.py`): what the host waits for in a step, and what is trained."""

import errno
import math
import os
import threading
from collections import Counter

import pytest
import torch
from accelerate.state import AcceleratorState

from core_models.checkpoint import read_tensors
from core_models.system import System
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import collate
from core_models.training import loop
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.loop import TrainingError
from core_models.training.prefetch import prefetched
from core_models.training.progress import Progress, progress_of, read_progress, whole_states
from tests.fake_cuda import CUDA, FakeCuda
from tests.kinds import sampled

READING = "core_models.training.gradient_check.UnreadUpdate.read reads a list"
EXACT = "dropout=0,attention_dropout=0"


@pytest.fixture(autouse=True)
def accelerators_own_device():
    """Accelerate keeps the device of the last training for the whole process."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


def trained_on_gpu(run) -> tuple[Counter[str], Counter[str]]:
    """What the host waited for and uploaded in a whole training."""
    with FakeCuda() as gpu:
        fit(run, device="cuda")
    return gpu.waits, gpu.uploads


@pytest.mark.parametrize("system", sampled(["gdr-bow-bca", "transformer", "pfrnn-loss", "qcn-reg"]))
@pytest.mark.slow
def test_steps_wait_once_for_a_line_of_the_log_upload_ahead_and_train_as_on_the_cpu(new_run, monkeypatch, system):
    """Trainings of one step and of nine differ by two lines of the log: start, validation and saving are the same."""
    settings = {"validate_every": 100, "log_every": 4}
    fit(host := new_run("host", f"{system}:{EXACT}", max_steps=9, **settings), device="cpu")
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    runs = [new_run(f"gpu-{steps}", f"{system}:{EXACT}", max_steps=steps, **settings) for steps in (1, 9)]
    (waits, moved), (more_waits, more_moved) = map(trained_on_gpu, runs)
    assert more_waits - waits == {READING: 2}
    assert more_moved - moved == {}, "batches are pinned, and their copies asked for ahead"
    weights, others = (read_tensors(run / "weights.safetensors") for run in (host, runs[1]))
    for name, values in weights.items():
        torch.testing.assert_close(others[name], values, atol=2e-6, rtol=0)
    logs = [list(read_events(run / "training.jsonl")) for run in (host, runs[1])]
    for event, other in zip(*logs, strict=True):
        assert (event["event"], event["step"]) == (other["event"], other["step"])
        if "main_loss" in event:
            assert other["main_loss"] == pytest.approx(event["main_loss"], rel=1e-4)
            assert other["tokens"] == event["tokens"]


def test_a_step_skipped_on_the_gpu_changes_nothing_and_is_logged_when_the_numbers_are_read(new_run, monkeypatch):
    """A loss is NaN at steps 2 and 3 of 6; the log, read after steps 4 and 6, has the weights and lines of the CPU."""
    settings = {"validate_every": 100, "log_every": 4, "max_steps": 6}
    plain, calls = System.losses, Counter[str]()

    def broken(self, *arguments, **named):
        calls["losses"] += 1
        terms = plain(self, *arguments, **named)
        return {name: term * math.nan for name, term in terms.items()} if calls["losses"] in (2, 3) else terms

    monkeypatch.setattr(System, "losses", broken)
    host, run = (new_run(name, f"transformer:{EXACT}", **settings) for name in ("host", "gpu"))
    fit(host, device="cpu")
    calls.clear()
    monkeypatch.setattr(loop, "limit_of_memory", lambda *_: (math.inf, ""))  # it would take the losses of batches first
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    trained_on_gpu(run)
    for folder in (host, run):
        events = list(read_events(folder / "training.jsonl"))
        skipped = [(event["step"], event["processes"]) for event in events if event["event"] == "skipped"]
        assert skipped == [(2, [0]), (3, [0])]
    weights, others = (read_tensors(folder / "weights.safetensors") for folder in (host, run))
    for name, values in weights.items():
        assert values.isfinite().all()
        torch.testing.assert_close(others[name], values, atol=2e-6, rtol=0)


class SlowDisk:
    """Holds back the optimizer's file of a state until `go_on`."""

    def __init__(self, monkeypatch) -> None:
        self._free, save = threading.Event(), torch.save

        def held(content, file) -> None:
            assert self._free.wait(60), "training waits for the disk"
            save(content, file)

        monkeypatch.setattr(torch, "save", held)

    def go_on(self) -> None:
        self._free.set()


@pytest.mark.slow
def test_steps_go_on_while_a_state_is_written_which_is_that_of_its_own_step(new_run, monkeypatch):
    """The disk writes the state of step 2 only when step 3 has been logged; the next save waits for it."""
    settings = {"max_steps": 4, "save_every": 2}
    fit(host := new_run("host", f"transformer:{EXACT}", **settings), device="cpu")
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    run, disk = new_run("gpu", f"transformer:{EXACT}", **settings), SlowDisk(monkeypatch)

    def when_logged(progress: Progress, steps: int, latest: dict) -> None:
        if progress.step == 3:
            assert not whole_states(run / "state")
            disk.go_on()

    with FakeCuda() as gpu:
        fit(run, device="cuda", report=when_logged)
    assert not [line for line in gpu.waits if ".saving." in line]
    for wanted, state in zip(whole_states(host / "state"), whole_states(run / "state"), strict=True):
        assert wanted.name == state.name
        weights, others = (read_tensors(folder / "weights.safetensors") for folder in (wanted, state))
        for name, values in weights.items():
            torch.testing.assert_close(others[name], values, atol=2e-6, rtol=0)
        moments, others = (torch.load(folder / "optimizer.pt")["optimizer"]["state"] for folder in (wanted, state))
        for number, values in moments.items():
            assert others[number]["step"] == values["step"] == int(state.name.removeprefix("step-"))
            torch.testing.assert_close(others[number]["exp_avg"], values["exp_avg"], atol=2e-6, rtol=0)
        ends = [progress_of(folder).model_dump(exclude={"seconds", "window"}) for folder in (wanted, state)]
        assert ends[0] | {"best": None} == ends[1] | {"best": None}
        assert progress_of(state).window.keys() == progress_of(wanted).window.keys()


class Interrupted(Exception):
    pass


@pytest.mark.slow
def test_an_error_waits_until_what_is_being_written_is_whole(new_run, monkeypatch):
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    run, disk = new_run("gpu", max_steps=4, save_every=2), SlowDisk(monkeypatch)

    def interrupt(progress: Progress, steps: int, latest: dict) -> None:
        if progress.step == 3:
            threading.Timer(0.2, disk.go_on).start()
            raise Interrupted

    with FakeCuda(), pytest.raises(Interrupted):
        fit(run, device="cuda", report=interrupt)
    assert read_progress(run / "state").step == 2
    assert not list(run.rglob("*.part"))


def test_a_last_state_that_cannot_be_written_is_no_end(new_run, monkeypatch):
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    run = new_run("gpu", max_steps=2)

    def full(content, file) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(torch, "save", full)
    with FakeCuda(), pytest.raises(TrainingError, match=r"optimizer.pt: No space left .*; no state was saved before"):
        fit(run, device="cuda")
    assert [event["event"] for event in read_events(run / "training.jsonl")][-1] == "valid"


def test_batches_made_ahead_are_the_same_in_the_same_order(prepared):
    def batches():
        return BatchLoader(prepared.split("train"), 200).epoch(0)

    with FakeCuda():
        ahead = list(prefetched(batches(), CUDA))
    assert [batch.indices.tolist() for batch in ahead] == [batch.indices.tolist() for batch in batches()]
    assert all(hasattr(batch.source, "pinned") for batch in ahead)
    assert not any(hasattr(batch.source, "pinned") for batch in prefetched(batches(), torch.device("cpu")))


def test_what_fails_while_a_batch_is_made_ahead_fails_where_it_is_wanted():
    def broken():
        yield collate([[5, 6]], [[7]])
        raise OSError("the disk is gone")

    with FakeCuda(), pytest.raises(OSError, match="the disk is gone"):
        list(prefetched(broken(), CUDA))


@pytest.mark.parametrize("system", sampled(["gdr-bow-bca", "transformer", "qcn-reg"]))
@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_cut_and_trains_the_same(new_run, monkeypatch, system):
    """Training, validation and the largest tensors of both; in float64, so that the order of sums hardly shows."""
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    settings = {"max_steps": 3, "validate_every": 2, "accumulate": 2, "batch_tokens": 600}
    whole, cut = (new_run(name, f"{system}:{EXACT}", **settings) for name in ("whole", "cut"))
    with FakeCuda() as gpu:
        fit(whole, device="cuda")
    with FakeCuda(room=0.6 * gpu.largest):
        fit(cut, device="cuda")
    logged = list(read_events(cut / "training.jsonl"))
    ((limit, step),) = [(event["words"], event["step"]) for event in logged if event["event"] == "out_of_memory"]
    assert 0 < limit < 600
    assert step == 0, "what fits is found before the first step"
    for event, other in zip(
        read_events(whole / "training.jsonl"),
        [event for event in logged if event["event"] != "out_of_memory"],
        strict=True,
    ):
        losses = {name: value for name, value in event.items() if name.endswith("_loss")}
        assert {name: other[name] for name in losses} == pytest.approx(losses, rel=1e-9)
    weights, others = (read_tensors(run / "weights.safetensors") for run in (whole, cut))
    for name, values in weights.items():
        torch.testing.assert_close(others[name], values, atol=1e-6, rtol=0)


@pytest.mark.parametrize("system", sampled(["han", "transformer", "qcn-reg"]))
@pytest.mark.slow
def test_no_batch_of_an_epoch_is_dearer_than_those_that_were_tried(new_run, monkeypatch, system):
    """A GPU with room for every batch but the dearest: what follows is cut by its limit, and fits."""
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    settings = {"max_steps": None, "max_epochs": 1, "batch_tokens": 900}
    whole, cut = (new_run(name, f"{system}:{EXACT}", **settings) for name in ("whole", "cut"))
    with FakeCuda() as gpu:
        fit(whole, device="cuda")
    with FakeCuda(room=gpu.largest - 1):
        fit(cut, device="cuda")
    assert [event["step"] for event in read_events(cut / "training.jsonl") if event["event"] == "out_of_memory"] == [0]


@pytest.mark.slow
def test_what_is_tried_before_the_first_step_leaves_no_trace(new_run, monkeypatch):
    """Dropout is on: the generators go on from where they were; so do moments and gradients."""
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    tried, straight = (new_run(name, max_steps=2) for name in ("tried", "straight"))
    with FakeCuda():
        fit(tried, device="cuda")
        monkeypatch.setattr(loop, "limit_of_memory", lambda *_: (math.inf, ""))
        fit(straight, device="cuda")
    weights = [(run / "weights.safetensors").read_bytes() for run in (tried, straight)]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_sentence_that_does_not_fit_alone_ends_the_training(new_run, monkeypatch):
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    run = new_run("run", f"transformer:{EXACT}", max_steps=3)
    with FakeCuda() as gpu:

        def leave_no_room(*_) -> None:
            gpu.room = 10

        with pytest.raises(torch.OutOfMemoryError):
            fit(run, device="cuda", report=leave_no_room)
    limits = [event["words"] for event in read_events(run / "training.jsonl") if event["event"] == "out_of_memory"]
    assert limits == sorted(limits, reverse=True)
    assert len(limits) > 1, "batches were cut down to single sentences before"
