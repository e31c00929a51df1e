"""Several processes train what one process trains: the batches two ranks take at a step are those one accumulates."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core_models.checkpoint import read_tensors
from core_models.system_builder import build
from core_models.text.batch_loader import BatchLoader
from core_models.text.documents import ContextUse
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.progress import Progress
from tests.core_models.training.processes import DevShares, RoomFor, ShortTables, free_port, start_ranks, train

PROGRAM = "import sys; from core_models.training.fit import fit; fit(sys.argv[1])"
SYSTEM = "future-cost-2:dropout=0,attention_dropout=0"


def even_budget(text, updates: int, context: ContextUse = ContextUse()) -> int:  # noqa: B008 - it is frozen
    """A token budget whose epochs have even numbers of batches: an odd number is halved for two ranks: another plan."""
    for budget in range(100, 800):
        loader, batches, epoch = BatchLoader(text, budget, seed=1, context=context), 0, 0
        while batches < 2 * updates and len(loader.plan(epoch)) % 2 == 0:
            batches, epoch = batches + len(loader.plan(epoch)), epoch + 1
        if batches >= 2 * updates:
            return budget
    raise AssertionError("no budget gives even numbers of batches")


def pair(new_run, text, updates: int, precision: str, system: str = SYSTEM) -> tuple[Path, Path]:
    """The same training for one process, that accumulates two batches, and for two."""
    settings = {"max_steps": updates, "validate_every": updates, "keep_last": 0, "precision": precision}
    settings["batch_tokens"] = even_budget(text, updates, build(f"{system},preset=tiny", 30).context)
    return new_run("one", system, accumulate=2, **settings), new_run("two", system, **settings)


def assert_same_losses(one: Path, two: Path, updates: int, tolerance: float, term: str = "future_cost") -> None:
    alone, together = (
        [event for event in read_events(run / "training.jsonl") if event["event"] == "train"] for run in (one, two)
    )
    assert len(alone) == updates
    assert [event["tokens"] for event in together] == [event["tokens"] for event in alone]
    for mine, theirs in zip(alone, together, strict=True):
        for name in ("main_loss", f"{term}_loss"):
            assert theirs[name] == pytest.approx(mine[name], rel=tolerance, abs=0)


@pytest.mark.exhaustive
def test_two_nodes_end_with_the_weights_of_one_process(new_run, prepared, tmp_path):
    """Each node has a launcher of its own, which finds the other by its address, and is told of no device.

    Dropout is 0 and the ranks' batches hold unequal numbers of tokens; one number divides the whole step.
    """
    text = prepared.split("train")
    one, two = pair(new_run, text, 100, "float64")
    loaders = [BatchLoader(text, even_budget(text, 100), 1, rank, 2) for rank in (0, 1)]
    tokens = [[batch.target_tokens for batch in loader.epoch(0)] for loader in loaders]
    assert all(mine != theirs for mine, theirs in zip(*tokens, strict=True))
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    where = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{free_port()}"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc_per_node", "1", *where]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    nodes = [
        subprocess.Popen([*launcher, str(program), str(two)], stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    try:
        said = [node.communicate(timeout=250)[1] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], said
    fit(one, device="cpu")
    assert_same_losses(one, two, 100, 1e-8)
    assert_near_weights(one, two)


def assert_near_weights(one: Path, two: Path, tolerance: float = 1e-8) -> None:
    weights = [read_tensors(run / "weights.safetensors") for run in (one, two)]
    assert all((weights[0][name] - weights[1][name]).abs().max() < tolerance for name in weights[0])


def test_two_ranks_train_with_context_what_one_process_trains(new_run, prepared):
    """Each rank's batches bring the sentences before theirs along."""
    one, two = pair(new_run, prepared.split("train"), 3, "float64", "qcn-reg:dropout=0,attention_dropout=0")
    assert [rank.ended() for rank in start_ranks(two)] == [0, 0]
    fit(one, device="cpu")
    assert_same_losses(one, two, 3, 1e-8, "regularisation")
    assert_near_weights(one, two)


@pytest.mark.parametrize(
    ("system", "term"),
    [
        ("rnnsearch:decoder_init=zero", "main"),
        ("gdr-rnn:iterations=1", "past_bag"),
        ("qcn-reg:detach=true", "main"),
        ("d2gpo:form=density,order=first", "gaussian_prior"),
    ],
)
def test_two_ranks_wait_for_no_gradient_that_never_comes(new_run, prepared, system, term):
    one, two = pair(new_run, prepared.split("train"), 3, "float64", f"{system},dropout=0,attention_dropout=0")
    assert [rank.ended() for rank in start_ranks(two)] == [0, 0]
    fit(one, device="cpu")
    assert_same_losses(one, two, 3, 1e-8, term)
    assert_near_weights(one, two)


def test_two_ranks_cut_batches_to_what_fits_both_and_train_the_same(new_run, prepared):
    """Their batches make unequal numbers of parts; only the last part of a batch waits for the other rank."""
    one, two = pair(new_run, prepared.split("train"), 3, "float64")
    assert [rank.ended() for rank in start_ranks(two, (RoomFor(math.inf), RoomFor(60)))] == [0, 0]
    fit(one, device="cpu")
    cuts = [event for event in read_events(two / "training.jsonl") if event["event"] == "out_of_memory"]
    assert [(event["words"], event["step"], event["why"]) for event in cuts] == [(60, 0, "on another process")]
    assert_same_losses(one, two, 3, 1e-8)
    assert_near_weights(one, two)


@pytest.mark.slow
def test_two_ranks_in_float32_have_the_losses_of_one_process(new_run, prepared):
    """And tables that grow with what a rank has read stay each rank's own."""
    one, two = pair(new_run, prepared.split("train"), 30, "float32")
    assert [rank.ended() for rank in start_ranks(two, (ShortTables(), ShortTables()))] == [0, 0]
    fit(one, device="cpu")
    assert_same_losses(one, two, 30, 1e-4)


def letters_by_place(sources, hypotheses, references) -> list[float]:
    """A reward that depends on every sentence, and on its place among them."""
    return [len(set(text)) / (1 + place) for place, text in enumerate(hypotheses)]


@pytest.mark.parametrize("system", ["transformer", "qcn-reg"])
@pytest.mark.slow
def test_two_ranks_share_dev_and_find_what_one_process_finds(new_run, system):
    """Losses and the metric of early stopping to the last bit; of other weights they would not be comparable so."""
    settings = {"max_steps": 1, "validate_every": 1, "batch_tokens": 60, "early_stopping": {"metric": "adequacy"}}
    one, two = (new_run(name, system, {"batch_tokens": 60, "max_length": 6}, **settings) for name in ("one", "two"))
    assert train(one, DevShares("alone"), letters_by_place) == 0
    ranks = start_ranks(two, (DevShares("rank-0"), DevShares("rank-1")), letters_by_place)
    assert [rank.ended() for rank in ranks] == [0, 0]
    alone, together = (
        next(e for e in read_events(run / "training.jsonl") if e["event"] == "valid") for run in (one, two)
    )
    names = [name for name in alone if name.endswith("_loss") or name == "adequacy"]
    assert {name: together[name] for name in names} == {name: alone[name] for name in names}
    assert alone["adequacy"] > 0
    every = json.loads((one / "alone.json").read_text())
    shares = [json.loads((two / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    for what, numbers in every.items():
        assert all(share[what] for share in shares)
        assert sorted(shares[0][what] + shares[1][what]) == sorted(numbers)


def test_another_number_of_processes_stands_at_the_same_place_of_the_epoch():
    progress = Progress(batch=6, processes=2)
    progress.adopt(3)
    assert (progress.batch, progress.processes) == (4, 3)
    progress.adopt(1)
    assert progress.batch == 12
