"""Records of a run that say what cannot be: passed over where the others stay true, else refused in one sentence."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from core_models.traces import TraceError, TraceStore
from workbench.evaluation.gold_alignments import truths
from workbench.evaluation.run_table import runs_table
from workbench.store.runs import RunError, list_runs, open_run
from workbench.store.training_logs import training_table

CURVES = ("figure", "training-curves", "--run", "runs/one", "--out", "curves.json")
RECORD = {
    **{"alignment": [[0, 1], [1, 0]], "unaligned_source": [], "unaligned_target": [2], "phenomena": ["it"]},
    "pronouns": [
        {"target": 1, "antecedent": {"sentence": -1, "word": 2}, "gender": "m", "alternatives": ["sie", "es"]}
    ],
    "commitments": [{"target": 0, "chosen": "er", "alternatives": ["sie"], "forces": [2]}],
}


def _edit(path: Path, change) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


@pytest.mark.parametrize(
    "line",
    [
        *('{"event": "train", "step": [1]}', '{"event": "valid", "step": -3, "main_loss": 1}', "[" * 100_000),
        *('{"event": "valid", "step": 1, "main_loss": "low"}', '{"step": 1}', '"event"', '{"event": "train", "step"'),
        *('{"event": "train", "step": 1, "main_loss": 1e999, "n": ' + "9" * 400 + "}", '{"event": [], "step": 1}'),
    ],
)
def test_a_line_of_the_log_that_is_no_event_is_passed_over(spoiled_run, done, line):
    before = training_table([open_run(spoiled_run)])
    log = spoiled_run / "training.jsonl"
    first, *others = log.read_text().splitlines()
    log.write_text("\n".join([first, line, *others]) + "\n")
    assert training_table([open_run(spoiled_run)]).equals(before)
    for command in (("runs", "--runs", "runs"), CURVES, ("resume", "runs/one", "--device", "cpu")):
        done(*command)


def test_a_log_that_cannot_be_read_is_said_of_its_run_and_stops_no_other(spoiled_run):
    shutil.copytree(spoiled_run, spoiled_run.with_name("two"))
    (spoiled_run / "training.jsonl").unlink()
    os.mkfifo(spoiled_run / "training.jsonl")
    one, two = runs_table(list_runs(spoiled_run.parent), "test").to_dict("records")
    assert (one["run"], one["state"], two["run"], two["state"]) == ("one", "broken", "two", "trained")
    assert one["problem"].endswith("training.jsonl: a named pipe, not a file")


@pytest.mark.parametrize(
    "change",
    [
        *({"search": [1]}, {"search": {"beam": [4]}}, {"sentences": -1}, {"sentences": True}, {"sentences": 6.0}),
        *({"seconds": "long"}, {"seconds": -1}, {"weights": 3}, {"weights_file": "x"}, {"search": None}),
    ],
)
def test_what_meta_says_has_a_schema(spoiled_run, refused, change):
    _edit(spoiled_run / "translations" / "test" / "meta.json", lambda found: found.update(change))
    said = refused("trace", "runs/one")
    assert "no finished translation here" in said
    assert next(iter(change)) in said


def test_an_average_is_of_checkpoints_of_steps_alone(spoiled_run, done):
    expected = done("runs", "average", "runs/one", "--last", "2")
    for name in ("step-abc", "step-²", "step-", "step-1e3"):
        (spoiled_run / "checkpoints" / f"{name}.safetensors").write_bytes(b"x")
    assert done("runs", "average", "runs/one", "--last", "2") == expected


@pytest.mark.parametrize("data", ["a\0b", "\0"])
def test_a_path_of_data_that_is_none_is_refused(spoiled_run, refused, done, data):
    config = spoiled_run / "config.yaml"
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "data": data}))
    assert "data: this is no path of a folder" in refused("resume", "runs/one")
    assert "this is no path of a folder" in done("runs", "--runs", "runs")


@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.update(axes=["source"]) or array.update(axes=[]),
        lambda array: array.update(sums_to_one="x"),
        lambda array: array["sentences"].update({"0": [-3, 3]}),
        lambda array: array["sentences"].update({"0": []}),
        lambda array: array["sentences"].update({"0": [0, 10**12]}),
        lambda array: array["sentences"].update({"-1": [0, 1]}),
        lambda array: array.update(sentences=[]),
    ],
)
def test_an_index_of_traces_is_held_to_its_arrays(spoiled_run, change):
    folder = spoiled_run / "traces" / "test"
    _edit(folder / "index.json", lambda index: change(index["arrays"]["log_prob"]))
    with pytest.raises(TraceError, match="trace the run again"):
        TraceStore(folder).array("log_prob", 0)


def test_an_index_of_traces_names_no_file_elsewhere(spoiled_run):
    folder = spoiled_run / "traces" / "test"
    shutil.copy(folder / "log_prob.npy", spoiled_run / "elsewhere.npy")
    _edit(folder / "index.json", lambda index: index["arrays"].update({"../../elsewhere": index["arrays"]["log_prob"]}))
    with pytest.raises(TraceError, match="trace the run again"):
        TraceStore(folder)


@pytest.fixture
def with_truth(spoiled_run) -> Path:
    """A run of a test set of which everything is known: its translations, and the folder of these."""
    folder = spoiled_run / "translations" / "test"
    (folder / "references.txt").write_text("er sieht Baum\n" * 6)
    (folder / "sources.txt").write_text("it sees\n" * 6)
    record = {**RECORD, "pronouns": [{**RECORD["pronouns"][0], "target": 0}]}
    (folder / "truth.jsonl").write_text((json.dumps(record) + "\n") * 6)
    return folder


def test_truth_of_the_texts_is_read(with_truth, done):
    assert len(truths(open_run(with_truth.parents[1]), "test")) == 6
    assert "pronoun" in done("controlled", "pronouns", "runs/one")


@pytest.mark.parametrize("name", ["references.txt", "sources.txt"])
def test_texts_that_were_edited_beside_their_truth_are_refused(with_truth, refused, name):
    path = with_truth / name
    path.write_text("".join(["er\n", *path.read_text().splitlines(keepends=True)[1:]]))
    for command in ("pronouns", "coverage"):
        assert "truth.jsonl:1: it knows word" in refused("controlled", command, "runs/one")
    with pytest.raises(RunError, match=r"truth\.jsonl:1: it knows word"):
        truths(open_run(with_truth.parents[1]), "test")


def test_words_that_were_edited_beside_their_truth_are_refused(with_truth, refused):
    path = with_truth / "references.txt"
    path.write_text("sie sieht Baum\n" + "er sieht Baum\n" * 5)
    assert "truth and references must come from the same corpus" in refused("controlled", "pronouns", "runs/one")


@pytest.mark.parametrize(
    "change",
    [
        *({"alignment": [[0]]}, {"alignment": [[0, -1]]}, {"alignment": [[0, "1"]]}, {"alignment": 3}),
        *({"unaligned_source": [99]}, {"pronouns": [{}]}, {"pronouns": [3]}, {"phenomena": "it"}),
        {"commitments": [{**RECORD["commitments"][0], "forces": []}]},
        {"commitments": [{**RECORD["commitments"][0], "forces": [99]}]},
    ],
)
def test_truth_that_no_corpus_wrote_is_refused(with_truth, refused, change):
    path = with_truth / "truth.jsonl"
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **change})
    path.write_text("\n".join(lines) + "\n")
    assert "truth.jsonl:3: " in refused("controlled", "pronouns", "runs/one")
