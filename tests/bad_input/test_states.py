"""States of a training that no training left: refused by `resume` before anything of them is used, in one sentence."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import torch
import yaml

from tests.kinds import sampled

RESUME = ("resume", "runs/one", "--device", "cpu")
STATE = "state/step-000004"


@pytest.fixture
def to_go_on(spoiled_run) -> Path:
    """The state of a run of which more is asked than it was trained for."""
    config = spoiled_run / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["training"]["max_steps"] = 5
    config.write_text(yaml.safe_dump(settings))
    return spoiled_run / STATE


def _of_all(name: str, change):
    def spoil(stored: dict) -> None:
        for own in stored["optimizer"]["state"].values():
            own[name] = change(own[name])

    return spoil


def _put(value, *path):
    def spoil(stored: dict) -> None:
        place = stored
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return spoil


OPTIMIZERS = {
    "moments of other shapes": _of_all("exp_avg", lambda moment: torch.zeros(3)),
    "second moments of other shapes": _of_all("exp_avg_sq", lambda moment: moment[:1]),
    "moments without size": _of_all("exp_avg", lambda moment: torch.zeros(())),
    "moments with one axis more": _of_all("exp_avg", lambda moment: moment[None]),
    "empty moments": _of_all("exp_avg_sq", lambda moment: torch.zeros(0)),
    "whole moments": _of_all("exp_avg", lambda moment: moment.long()),
    "complex moments": _of_all("exp_avg", lambda moment: moment.to(torch.complex64)),
    "sparse moments": _of_all("exp_avg", lambda moment: moment.to_sparse()),
    "moments without memory": _of_all("exp_avg", lambda moment: moment.to("meta")),
    "NaN": _of_all("exp_avg", lambda moment: moment * float("nan")),
    "infinite": _of_all("exp_avg", lambda moment: moment + float("inf")),
    "negative squares": _of_all("exp_avg_sq", lambda moment: moment - 1),
    "no tensors": _of_all("exp_avg", lambda moment: [1.0]),
    "no moments": _of_all("exp_avg", lambda moment: None),
    "steps of a vector": _of_all("step", lambda step: torch.ones(7)),
    "steps below none": _of_all("step", lambda step: step - 100),
    "steps that are NaN": _of_all("step", lambda step: step * float("nan")),
    "another moment": lambda stored: stored["optimizer"]["state"][0].update(max_exp_avg_sq=torch.zeros(3)),
    "a moment less": lambda stored: stored["optimizer"]["state"][0].pop("exp_avg"),
    "moments of no parameter": lambda stored: stored["optimizer"]["state"].update({9999: {}}),
    "moments of a name": lambda stored: stored["optimizer"]["state"].update({"x": {}}),
    "a list of moments": _put([], "optimizer", "state"),
    "parameters in another order": lambda stored: stored["optimizer"]["param_groups"][0]["params"].reverse(),
    "one parameter less": lambda stored: stored["optimizer"]["param_groups"][0]["params"].pop(),
    "no groups": _put([], "optimizer", "param_groups"),
    "a group that is none": _put([3], "optimizer", "param_groups"),
    "no optimizer": lambda stored: stored.pop("optimizer"),
    "an optimizer that is none": _put(torch.zeros(2), "optimizer"),
    "no random states": lambda stored: stored.pop("random"),
    "a random state less": lambda stored: stored["random"].pop("cpu"),
    "a random state of another size": _put(torch.zeros(1, 5, dtype=torch.uint8), "random", "cpu"),
    "a random state of nothing": _put(torch.zeros(1, 5056, dtype=torch.uint8), "random", "cpu"),
    "random states of more processes": _put(torch.zeros(3, 5056, dtype=torch.uint8), "random", "cpu"),
    "a random state of numbers": _put(torch.zeros(1, 5056), "random", "cpu"),
}


@pytest.mark.parametrize("case", sampled(OPTIMIZERS))
def test_an_optimizer_of_other_parameters_is_refused(to_go_on, refused, case):
    path = to_go_on / "optimizer.pt"
    stored = torch.load(path, weights_only=True)
    OPTIMIZERS[case](stored)
    torch.save(stored, path)
    _is_refused(refused)


BYTES = {
    "nothing": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "something else": lambda content: b"\x80\x02]q\x00." + content,
    "a list": lambda content: json.dumps([1]).encode(),
}


@pytest.mark.parametrize("case", BYTES)
def test_an_optimizer_that_is_no_file_of_tensors_is_refused(to_go_on, refused, case):
    path = to_go_on / "optimizer.pt"
    path.write_bytes(BYTES[case](path.read_bytes()))
    _is_refused(refused)


def test_a_packed_optimizer_is_refused_unopened(to_go_on, refused):
    path = to_go_on / "optimizer.pt"
    with zipfile.ZipFile(path) as stored:
        content = {entry.filename: stored.read(entry) for entry in stored.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, own in content.items():
            packed.writestr(name, own)
    assert "is compressed" in _is_refused(refused)


PROGRESS = {
    "a batch beyond the epoch": {"batch": 10**12},
    "a batch before it": {"batch": -1},
    "no processes": {"processes": 0},
    "processes without end": {"processes": 10**12},
    "a step before the first": {"step": -5},
    "another step than its folder": {"step": 3},
    "a step that is a list": {"step": [1]},
    "a step that is text": {"step": "4"},
    "a step that is true": {"step": True},
    "half a step": {"step": 4.5},
    "a step without end": {"step": 10**400},
    "more epochs than steps": {"epoch": 5},
    "a best that is NaN": {"best": float("nan")},
    "a best that is text": {"best": "high"},
    "infinite seconds": {"seconds": float("inf")},
    "negative seconds": {"seconds": -1.0},
    "finished as text": {"finished": "no"},
    "a reason that is a number": {"reason": 3},
    "a window that is a list": {"window": [1.0]},
    "a window of text": {"window": {"tokens": "x"}},
    "unmatched that is text": {"unmatched": "all"},
    "an unknown key": {"stepp": 1},
    "a null": {"tokens": None},
}


@pytest.mark.parametrize("case", sampled(PROGRESS))
def test_a_place_where_no_training_stands_is_refused(to_go_on, refused, case):
    path = to_go_on / "progress.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **PROGRESS[case]}))
    _is_refused(refused)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"{}", b"[" * 100_000, b"\xff", b'{"step": 4, "step": -4}']
)
def test_a_progress_that_is_none_is_refused(to_go_on, refused, content):
    (to_go_on / "progress.json").write_bytes(content)
    _is_refused(refused)


@pytest.mark.parametrize("name", ["step-²", "step-abc", "step-", "step--1", "step-٣", "step-999999999999999999999"])
def test_other_folders_and_files_among_states_and_checkpoints_are_passed_over(to_go_on, done, name):
    (to_go_on.with_name(name)).mkdir()
    run = to_go_on.parents[1]
    (run / "checkpoints" / f"{name}.safetensors").write_bytes(b"")
    assert "step 5" in done(*RESUME)
    assert (run / "checkpoints" / f"{name}.safetensors").exists()


def _is_refused(refused) -> str:
    said = refused(*RESUME)
    assert STATE in said or "its state is" in said
    assert "\n" not in said
    return said
