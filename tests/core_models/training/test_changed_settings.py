"""A run whose settings are changed before it goes on: what it takes with it, and what it says or refuses."""

import logging

import pytest

from core_models.checkpoint import CheckpointError
from core_models.settings import ConfigError
from core_models.text.parallel import TextError
from core_models.training.fit import fit
from core_models.training.loop import Loop
from core_models.training.progress import Progress
from tests.core_models.training.test_beyond_the_end import ask_for


@pytest.mark.parametrize(
    ("before", "after", "value"), [("chrf", "loss", 30.0), ("loss", "chrf", 0.0), ("bleu", "chrf", 90.0)]
)
def test_values_of_two_metrics_are_not_compared(new_run, caplog, before, after, value):
    """The best value of the metric before would win for ever, or lose at once."""
    run = new_run("run", max_steps=2, validate_every=1, early_stopping={"metric": before})
    fit(run, device="cpu", score=lambda *_: value)
    ask_for(run, max_steps=3, early_stopping={"metric": after})
    with caplog.at_level(logging.WARNING):
        progress = fit(run, device="cpu", score=lambda *_: value)
    assert (progress.best_step, progress.validations_without_gain) == (3, 0)
    assert "early_stopping.metric has changed" in caplog.text


def test_the_place_in_an_epoch_is_kept_in_batches_of_another_size(new_run, caplog, monkeypatch):
    """After half of the batches half of the new ones are left."""
    run = new_run("run", max_steps=None, max_epochs=1, batch_tokens=400)
    whole = fit(new_run("whole", max_steps=None, max_epochs=1, batch_tokens=400), device="cpu").step
    ask_for(run, max_steps=whole // 2)
    fit(run, device="cpu")
    halves = fit(new_run("halves", max_steps=None, max_epochs=1, batch_tokens=200), device="cpu").step
    ask_for(run, max_steps=None, batch_tokens=200)
    steps, step = [], Loop.step
    monkeypatch.setattr(Loop, "step", lambda loop, group: steps.append(len(group)) or step(loop, group))
    with caplog.at_level(logging.WARNING):
        fit(run, device="cpu")
    assert len(steps) == halves - (whole // 2) * halves // whole
    assert "the batches have changed; training goes on at batch" in caplog.text


@pytest.mark.parametrize("batches", [6, 3, 20])
def test_a_place_in_other_plans(batches):
    progress = Progress(batch=3, batches=6)
    assert progress.replan(batches) == (batches != 6)
    assert (progress.batch, progress.batches) == (batches // 2, batches)
    unknown = Progress(batch=3)  # a state of an earlier version
    assert not unknown.replan(batches)
    assert (unknown.batch, unknown.batches) == (3, batches)


def test_moments_of_other_parameters_are_refused(new_run):
    """As many of the same shapes, in another layer."""
    system = "transformer:decoder_layers=2"
    fit(beginning := new_run("beginning", system, max_steps=1), device="cpu")
    settings = {"init_from": str(beginning), "trainable_params": ["backbone.decoder.0.*"]}
    run = new_run("run", system, max_steps=1, **settings)
    fit(run, device="cpu")
    ask_for(run, max_steps=2, trainable_params=["backbone.decoder.1.*"])
    with pytest.raises(CheckpointError, match=r"backbone\.decoder\.0\.\S+ was trained here and now is not"):
        fit(run, device="cpu")
    ask_for(run, trainable_params=["backbone.decoder.0.*"])
    assert fit(run, device="cpu").step == 2


@pytest.mark.parametrize("minutes", [0, -1.0])
def test_no_time_at_all_is_refused(new_run, minutes):
    run = new_run("run")
    with pytest.raises(ConfigError, match=f"max_minutes: {minutes:g} leaves no time to train"):
        fit(run, device="cpu", minutes=minutes)
    assert not (run / "state").exists()


@pytest.mark.parametrize("system", ["transformer", "concatenation:context_sentences=1"])
def test_a_sampled_segmentation_without_room_gives_way_to_the_stored_one(new_run, prepared, system):
    """As many learned positions as the longest stored sentence needs; single characters are far longer."""
    text = prepared.split("train")
    needed = max(int(text.source_lengths.max()), int(text.target_lengths.max())) + 1
    if "concatenation" in system:
        needed = 2 * needed
    learned = f"{system}{',' if ':' in system else ':'}position_embedding=learned,max_positions={needed}"
    run = new_run("run", learned, max_steps=None, max_epochs=1, subword_alpha=0.9)
    assert fit(run, device="cpu").finished


def test_an_alpha_that_the_vocabulary_cannot_sample_with_is_refused_before_the_first_step(new_run):
    run = new_run("run", subword_alpha=1.5)  # the tiny text's vocabulary is of BPE
    with pytest.raises(TextError, match="with BPE it is the probability of leaving a merge out"):
        fit(run, device="cpu")
    assert not (run / "state").exists()
