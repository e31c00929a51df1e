"""A named pipe or a device in the place of any file of a run: one sentence at once, or what the file would
only have saved is computed again; never a wait and never memory without end."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.store.runs import list_runs

SECONDS = 60
TRANSLATE = ("translate", "runs/one", "--input", "in.txt", "--output", "out.txt")
EVALUATE = ("evaluate", "runs/one", "--n-resamples", "40")
TREE = ("figure", "beam-tree", "--run", "runs/one", "--out", "tree.json")
COST = ("figure", "future-cost-overlay", "--run", "runs/one", "--out", "cost.json")
# Every file of a run that is needed, and a command that needs it.
NEEDED = {
    "config.yaml": TRANSLATE,
    "weights.safetensors": TRANSLATE,
    "vocabulary/source.model": TRANSLATE,
    "translations/test/meta.json": ("trace", "runs/one"),
    "translations/test/sources.txt": EVALUATE,
    "translations/test/hypotheses.txt": EVALUATE,
    "translations/test/references.txt": EVALUATE,
    "translations/test/details.jsonl": ("trace", "runs/one"),
    "translations/test/trees.jsonl": TREE,
    "translations/test/trees.npy": TREE,
    "traces/test/index.json": COST,
    "traces/test/future_cost.log_prob.npy": COST,
    "training.jsonl": ("figure", "training-curves", "--run", "runs/one", "--out", "curves.json"),
    "state/step-000004/optimizer.pt": ("resume", "runs/one", "--device", "cpu"),
    "state/step-000004/weights.safetensors": ("resume", "runs/one", "--device", "cpu"),
    "state/step-000004/progress.json": ("resume", "runs/one", "--device", "cpu"),
}
SAVED = {"scores/*.npz": EVALUATE, "known_scores/test.json": EVALUATE, "checkpoints/*.safetensors": EVALUATE}


KINDS = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero")}


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    """A wait without end is a failure."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"still busy after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _replace(run: Path, pattern: str, kind: str) -> None:
    found = sorted(run.glob(pattern))
    assert found
    for path in found:
        path.unlink()
        KINDS[kind](path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NEEDED)
def test_what_is_no_file_is_refused_at_once(spoiled_run, refused, name, kind):
    _replace(spoiled_run, name, kind)
    said = refused(*NEEDED[name])
    assert "\n" not in said
    assert Path(name).name in said or "no finished translation here" in said
    list_runs(spoiled_run.parent)  # says so of the run, and waits for nothing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAVED)
def test_what_only_saves_work_is_computed_again(spoiled_run, done, name, kind):
    expected = done(*SAVED[name])
    _replace(spoiled_run, name, kind)
    assert done(*SAVED[name]) == expected


def test_a_link_to_a_file_is_that_file(spoiled_run, done):
    expected = done(*EVALUATE)
    elsewhere = spoiled_run.parents[1] / "elsewhere"
    shutil.move(spoiled_run, elsewhere)
    for path in sorted(elsewhere.rglob("*")):
        link = spoiled_run / path.relative_to(elsewhere)
        if path.is_file():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    assert done(*EVALUATE) == expected
    done(*TRANSLATE)
