"""Learning rates by hand."""

import itertools

import pytest

from core_models.config import TrainingConfig, read_config
from core_models.text.batch_loader import BatchLoader
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.schedule import learning_rate


def rate(step: int, total: int = 1000, reductions: int = 0, **given) -> float:
    settings = {"max_steps": total, "learning_rate": 0.8, "warmup": 4, **given}
    return learning_rate(step, TrainingConfig(**settings), total, reductions)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "fixed", "cosine", "plateau"])
def test_every_schedule_warms_up_linearly_to_its_peak(schedule):
    assert [rate(step, schedule=schedule) for step in (1, 2, 4)] == pytest.approx([0.2, 0.4, 0.8])


def test_inverse_square_root():
    """Vaswani 2017, Eq. 3 with d_model^-0.5 warmup^-0.5 as the peak: at four times the warm-up, half of it."""
    assert [rate(step) for step in (16, 64, 100)] == pytest.approx([0.4, 0.2, 0.16])
    assert rate(25, warmup=0) == pytest.approx(0.8 / 5)


def test_fixed():
    assert rate(500, schedule="fixed") == rate(5, schedule="fixed", warmup=0) == 0.8


def test_cosine_is_half_way_down_at_half_time_and_ends_at_zero():
    steps = (4 + 332, 4 + 498, 1000)
    assert [rate(step, schedule="cosine") for step in steps] == pytest.approx([0.6, 0.4, 0.0])


def test_cosine_over_epochs_falls_at_every_step_and_ends_with_the_last(prepared, new_run):
    """Epochs differ in their number of batches; here the first one has fewest."""
    run = new_run("run", max_epochs=4, max_steps=None, schedule="cosine", warmup=2, batch_tokens=150, log_every=1)
    training = read_config(run).training
    loader = BatchLoader(prepared.split("train"), 150, training.seed)
    lengths = [len(loader.plan(epoch)) for epoch in range(4)]
    assert len(set(lengths)) > 1
    fit(run, device="cpu")
    rates = [event["learning_rate"] for event in read_events(run / "training.jsonl") if event["event"] == "train"]
    assert len(rates) == sum(lengths)
    assert all(after < before for before, after in itertools.pairwise(rates[1:]))
    assert rates[-1] == 0


def test_plateau_multiplies_at_every_reduction():
    assert [rate(9, schedule="plateau", reductions=n, plateau_factor=0.5) for n in (0, 1, 3)] == pytest.approx(
        [0.8, 0.4, 0.1]
    )


def test_the_minimum_holds_after_the_warm_up():
    assert rate(10_000, total=20_000, minimum_learning_rate=0.05) == 0.05
    assert rate(1000, schedule="cosine", minimum_learning_rate=0.01) == 0.01
