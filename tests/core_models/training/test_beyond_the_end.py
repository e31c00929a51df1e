"""A run that had ended and is asked for more is the run that was asked for as much at once, or says where it is not."""

import logging

import pytest
import yaml

from core_models.training.events import read_events
from core_models.training.fit import fit
from tests.core_models.training.test_resume import assert_same_run, logged

SYSTEM = "transformer:heads=1,ffn_dim=32,decoder_layers=1"
# Dropout and subword sampling are on; steps of an accumulated rest, and an epoch's end lie on the way.
SETTINGS = {"batch_tokens": 350, "accumulate": 2, "subword_alpha": 0.2, "validate_every": 3, "keep_last": 2}


def ask_for(run, **settings) -> None:
    """Change settings of training in the config.yaml of a run."""
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["training"] |= settings
    (run / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def starts(run) -> list[dict]:
    return [event for event in read_events(run / "training.jsonl") if event["event"] == "start"]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ({"max_steps": 3}, {"max_steps": 9}),
        ({"max_steps": 6, "log_every": 4}, {"max_steps": 9}),
        ({"max_steps": None, "max_epochs": 1, "validate_every": 1}, {"max_epochs": 2}),
    ],
    ids=["steps", "half a window of the log", "epochs"],
)
@pytest.mark.slow
def test_what_is_trained_beyond_its_end_is_as_if_asked_for_at_once(new_run, caplog, first, more):
    at_once = new_run("at-once", SYSTEM, **{**SETTINGS, **first, **more})
    later = new_run("later", SYSTEM, **{**SETTINGS, **first})
    for run in (at_once, later):
        assert fit(run, device="cpu").reason == "all steps done"
    ask_for(later, **more)
    assert fit(later, device="cpu").finished
    assert_same_run(at_once, later)
    assert [event["event"] for event in logged(later)].count("end") == 1
    assert [start.get("beyond_its_end") for start in starts(later)] == [None, []]
    assert not caplog.records


@pytest.mark.slow
def test_an_early_stop_goes_on_with_more_patience_and_not_without(new_run):
    settings = {**SETTINGS, "validate_every": 1, "learning_rate": 0.5, "warmup": 0, "max_steps": 6}
    patient, hasty = (
        new_run(name, SYSTEM, **settings, early_stopping={"patience": patience})
        for name, patience in (("patient", 99), ("hasty", 1))
    )
    fit(patient, device="cpu")
    stopped = fit(hasty, device="cpu")
    assert (stopped.reason, stopped.step < 6) == ("early stopping", True)
    ask_for(hasty, max_steps=7)
    assert fit(hasty, device="cpu") == stopped
    ask_for(hasty, max_steps=6, early_stopping={"patience": 99})
    fit(hasty, device="cpu")
    assert_same_run(patient, hasty)


def test_what_cannot_be_as_if_asked_for_at_once_is_said(new_run, caplog):
    run = new_run("run", SYSTEM, **{**SETTINGS, "max_steps": 4, "schedule": "cosine"})
    fit(run, device="cpu")
    ask_for(run, max_steps=6)
    with caplog.at_level(logging.WARNING):
        assert fit(run, device="cpu").step == 6
    said = starts(run)[-1]["beyond_its_end"]
    assert said == [
        "its validation at step 4, which is no multiple of validate_every, still counts",
        "its learning rate fell towards the end at step 4, and rises again",
    ]
    assert [record.getMessage() for record in caplog.records] == [
        f"{run}: trained beyond its end; unlike a training of as many steps from the start, {'; '.join(said)}"
    ]
    rates = {event["step"]: event["learning_rate"] for event in logged(run) if event["event"] == "train"}
    assert rates[4] < rates[5]
