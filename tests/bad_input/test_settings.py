"""Systems, settings and devices that cannot be trained: one sentence with the field, and no run is begun."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.long

SETTINGS = {
    "an unknown key": (
        ("--config", "learning_rte=1"),
        "training: unknown key 'learning_rte'; did you mean 'learning_rate'?",
    ),
    "an unknown key within": (("--config", "early_stopping.pacience=1"), "did you mean 'patience'?"),
    "below its range": (
        ("--config", "learning_rate=-1"),
        "training: learning_rate: input should be greater than 0 (given: -1)",
    ),
    "no number": (
        ("--config", "max_grad_norm=.nan"),
        "training: max_grad_norm: input should be a finite number (given: nan)",
    ),
    "without end": (
        ("--config", "learning_rate=.inf"),
        "training: learning_rate: input should be a finite number (given: inf)",
    ),
    "above its range": (("--config", "betas=[0.9, 1.5]"), "training: betas: input should be less than 1 (given: 1.5)"),
    "a seed beyond all": (("--config", f"seed={1 << 70}"), "training: seed: input should be less than"),
    "no steps": (("--config", "max_steps=0"), "training: max_steps: input should be greater than 0 (given: 0)"),
    "words for a number": (
        ("--config", "batch_tokens=many"),
        "training: batch_tokens: input should be a valid integer",
    ),
    "a search out of range": (("--search", "beam=0"), "search: beam: input should be greater than 0 (given: 0)"),
    "a date that is none": (
        ("--config", "seed=2020-13-45"),
        "--config 'seed=2020-13-45': the value is not readable as YAML",
    ),
    "a value for a section": (
        ("--config", "early_stopping=3", "--config", "early_stopping.patience=3"),
        "early_stopping was given a value of its own",
    ),
    "a device that is not there": (
        ("--device", "cuda:99"),
        "device 'cuda:99': PyTorch finds no such device here; use cpu",
    ),
    "a device that is none": (("--device", "gpu"), "device 'gpu': PyTorch finds no such device here; use cpu"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_cannot_be_trained_with_are_named_and_no_run_is_begun(texts, refused, case):
    changes, message = SETTINGS[case]
    assert message in refused("train", "transformer:preset=tiny", "--data", "prepared", "--out", "run", *changes)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("transformer:preset=tiny,dropout=1.5", "dropout: input should be less than 1 (given: 1.5)"),
        ("transformer:preset=[tiny]", "preset: input should be 'tiny', 'demo'"),
        (
            "transformer:preset=tiny,d_model=!!python/object:x",
            "transformer:preset=tiny,d_model=!!python/object:x: d_model=!!python/object:x: the value is not",
        ),
        (
            f"gdr:preset=tiny,capsules={1 << 70}",
            "mechanisms.guided_capsules: capsules does not fit into 64 bits",
        ),
        (f"transformer:preset=tiny,d_model={1 << 70}", "d_model: input should be less than or equal to"),
        ("future-cost-1:preset=tiny,weight=.inf", "mechanisms.future_cost: weight: input should be a finite number"),
    ],
)
def test_systems_that_cannot_be_built_are_named_and_no_run_is_begun(texts, refused, system, message):
    assert message in refused("train", system, "--data", "prepared", "--out", "run")
