"""Weights that are no finite numbers, and trainings that come to them: refused where they are loaded for work, in one
sentence; what was saved before stays as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml

from core_models.checkpoint import read_tensors, write_tensors
from core_models.text.parallel import read_lines
from core_models.training.events import read_events
from tests.bad_input.conftest import content_of, run_command
from workbench.store.runs import list_runs

TRANSLATE = ("translate", "runs/one", "--input", "in.txt", "--output", "out.txt")
NAME = "backbone.decoder_norm.weight"


def _spoil(path: Path, change) -> None:
    tensors = read_tensors(path)
    tensors[NAME] = change(tensors[NAME])
    write_tensors(path, tensors)


def _with(value: float):
    def change(tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tensor([value], dtype=tensor.dtype), tensor[1:]])

    return change


BAD = {
    "NaN": (_with(float("nan")), "not finite"),
    "infinite": (_with(float("inf")), "not finite"),
    "infinite in bfloat16": (lambda tensor: _with(float("-inf"))(tensor.bfloat16()), "not finite"),
    "too large for float32": (lambda tensor: tensor.double() + 1e300, "not finite"),
    "whole numbers": (lambda tensor: tensor.long(), "is stored as I64"),
    "truth values": (lambda tensor: tensor > 0, "is stored as BOOL"),
    "complex": (lambda tensor: tensor.to(torch.complex64), "is stored as C64"),
    "eight bits": (lambda tensor: tensor.to(torch.float8_e4m3fn), "is stored as F8_E4M3"),
}


@pytest.mark.parametrize("case", BAD)
def test_weights_that_are_no_finite_numbers_are_refused_where_they_are_loaded(run, prepared, refused, case):
    change, message = BAD[case]
    _spoil(run / "weights.safetensors", change)
    (listed,) = list_runs(run.parent)
    assert listed.problem is None
    for command in (
        TRANSLATE,
        ("trace", "runs/one"),
        (
            *(
                "train",
                "future-cost-2:preset=tiny",
                "--data",
                prepared.folder,
                "--out",
                "new",
                "--init-from",
                "runs/one",
            ),
        ),
    ):
        said = refused(*command)
        assert f"{NAME} " in said
        assert message in said
        assert "\n" not in said


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_are_read_from_any_precision_that_they_are_stored_in(run, tmp_path, done, kind):
    path = run / "weights.safetensors"
    stored = {name: tensor.to(kind) for name, tensor in read_tensors(path).items()}
    write_tensors(path, {name: tensor.float() for name, tensor in stored.items()})
    done(*TRANSLATE)
    expected = read_lines(tmp_path / "out.txt")
    write_tensors(path, stored)
    done(*TRANSLATE)
    assert read_lines(tmp_path / "out.txt") == expected


def test_a_learning_rate_that_only_destroys_is_refused(run, prepared, refused):
    begin = ("train", "transformer:preset=tiny", "--data", prepared.folder, "--out", "new", "--config", "max_epochs=1")
    assert "learning_rate: input should be less than or equal to 10" in refused(
        *begin, "--config", "learning_rate=1.0e+30"
    )


@pytest.mark.parametrize("score", ["loss", "bleu"])
def test_a_training_that_diverges_ends_with_a_sentence_and_keeps_what_was_good(spoiled_run, capsys, monkeypatch, score):
    """Its last state is made to overflow: all losses from there on are not finite, and few enough to be passed over."""
    _spoil(spoiled_run / "state" / "step-000004" / "weights.safetensors", lambda tensor: tensor + 3e38)
    config = spoiled_run / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["training"].update(max_steps=6, early_stopping={"metric": score, "patience": 10})
    config.write_text(yaml.safe_dump(settings))
    kept = {path: path.read_bytes() for path in spoiled_run.rglob("*.safetensors")}
    before = content_of(spoiled_run)
    with pytest.raises(SystemExit) as stopped:
        run_command(monkeypatch, ("resume", str(spoiled_run), "--device", "cpu"))
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert stopped.value.code == 2
    assert said.startswith(f"workbench: {spoiled_run}: training has diverged: ")
    assert "step-000004 is whole and nothing before it is lost. Lower learning_rate" in said
    assert {path: path.read_bytes() for path in spoiled_run.rglob("*.safetensors")} == kept
    assert {name for name in content_of(spoiled_run) if before.get(name) != content_of(spoiled_run)[name]} == {
        "training.jsonl"
    }
    events = list(read_events(spoiled_run / "training.jsonl"))
    assert events[-1]["event"] == "diverged"
    assert all("NaN" not in json.dumps(event) for event in events)
