"""Two processes of torchrun write, byte for byte, the files that one process writes, and one of them speaks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.workbench.evaluation.conftest import files_of
from workbench import cli
from workbench.evaluation import distributed

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
SCRIPT = Path(sys.executable).parent / "workbench"  # what `pip install` makes of the entry point


@pytest.fixture
def run(batched_run) -> Path:
    """The folder of a run with several batches for each of two ranks."""
    return batched_run.folder


def _alone(*arguments: object) -> str:
    """Standard output of a command in this process, which has one thread."""
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def _together(*command: object) -> str:
    """Standard output of a command of two processes with one thread each."""
    words = [*TORCHRUN, *map(str, command)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAM = """
import json, sys
import torch.distributed
from workbench import cli
for command in json.loads(sys.argv[1]):
    cli.app(command, standalone_mode=False)
torch.distributed.destroy_process_group()  # as the program `workbench` does before it ends
"""


def _commands(run: Path, lines: Path) -> list[list[str]]:
    """A test set with trees and n-best, its traces, and a file of sentences."""
    return [
        ["translate", str(run), "--test", "test", "--save-beams", "--n-best", "3", "--search", "beam=4"],
        ["trace", str(run), "--test", "test", "--sentences", "1-9"],
        ["translate", str(run), "--input", str(lines), "--output", f"{run}.txt", "--n-best", "2"],
    ]


@pytest.mark.slow
def test_translations_trees_and_traces_are_those_of_one_process(run, prepared, tmp_path):
    other = Path(shutil.copytree(run, run.with_name("together")))
    lines, program = tmp_path / "lines.en", tmp_path / "commands.py"
    lines.write_text("\n".join(prepared.test("dev").sources), encoding="utf-8")
    program.write_text(PROGRAM, encoding="utf-8")
    for command in _commands(run, lines):
        _alone(*command)
    _together(program, json.dumps(_commands(other, lines)))
    assert Path(f"{other}.txt").read_bytes() == Path(f"{run}.txt").read_bytes()
    translated = files_of(run / "translations" / "test")
    assert {"hypotheses.txt", "details.jsonl", "trees.jsonl", "trees.npy"} <= translated.keys()
    assert any(json.loads(line)["n_best"] for line in translated["details.jsonl"].splitlines())
    assert files_of(other / "translations" / "test") == translated
    assert {"log_prob.npy", "index.json"} <= files_of(run / "traces" / "test").keys()
    assert files_of(other / "traces" / "test") == files_of(run / "traces" / "test")


@pytest.mark.slow
def test_evaluate_by_the_installed_script_is_said_once_and_scores_the_same(run):
    if not SCRIPT.is_file():
        pytest.skip("the workbench is not installed as a script here")
    other = Path(shutil.copytree(run, run.with_name("together")))
    arguments = ("--test", "test", "--metrics", "bleu,chrf", "--n-resamples", 40)
    alone = _alone("evaluate", run, *arguments)
    together = _together(SCRIPT, "evaluate", other, *arguments)
    assert together.replace(other.name, run.name) == alone
    assert len(alone.splitlines()) == 3
    assert files_of(other / "translations" / "test") == files_of(run / "translations" / "test")


@pytest.mark.parametrize("arguments", [["--num-samples", 2, "--input", "lines.en"], ["--input", "-"]])
def test_what_cannot_be_shared_is_refused(run, monkeypatch, arguments):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = CliRunner().invoke(cli.app, ["translate", str(run), *map(str, arguments)])
    assert done.exit_code == 2
    assert "are for one process: start it without torchrun" in done.output


def test_one_process_begins_a_run(prepared, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    words = ["train", "transformer:preset=tiny", "--data", str(prepared.folder), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2
    assert "then torchrun with workbench resume OUT" in done.output
    assert not (tmp_path / "run").exists()


def test_one_process_does_all_the_work_in_the_order_it_was_planned():
    seen: list[list[int]] = []

    def work(rows: list[int]) -> list[str]:
        seen.append(rows)
        return [str(row) for row in rows]

    told: list[tuple[int, int]] = []
    assert distributed.over_ranks([[2, 0], [1]], work, lambda *at: told.append(at)) == {2: "2", 0: "0", 1: "1"}
    assert seen == [[2, 0], [1]]
    assert told == [(2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("device", "processes", "own"),
    [("cuda", 4, "cuda:3"), ("cuda:1", 4, "cuda:1"), ("cpu", 4, "cpu"), ("cuda", 1, "cuda")],
)
def test_each_process_has_a_cuda_device_of_its_own(monkeypatch, device, processes, own):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert distributed.own_device(device) == own
