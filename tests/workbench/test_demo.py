"""The demo: the same seed gives the same bytes, and a demo that was killed goes on to the same end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import demo
from workbench.runs import open_run
from workbench.training import finished

SMALL = {
    "SENTENCES": {"sentences": 200, "dev": 10, "test": 10},
    "PIECES": 160,
    "SEARCH": {**demo.SEARCH, "beam": 2, "max_length": 12},
    "TRAINING": {
        **demo.TRAINING,
        "max_steps": 4,
        "validate_every": 2,
        "log_every": 1,
        "warmup": 1,
        "batch_tokens": 256,
    },
}
# Each step is held back a little in the process that is to be killed, so that it is killed in the middle.
SCRIPT = """
import sys, time, torch
from pathlib import Path
from workbench import demo
torch.set_num_threads(1)
for name, value in {settings!r}.items():
    setattr(demo, name, value)
demo.build(Path(sys.argv[1]), report=lambda name, done, total: time.sleep(float(sys.argv[2])))
"""


@pytest.fixture
def small(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(demo, name, value)


def _bytes(root: Path) -> dict[str, bytes]:
    """Everything that a seed decides: not the clock times of logs and summaries."""
    kept = (
        "corpus/*",
        "data/**/*",
        "*/vocabulary/*",
        "*/weights.safetensors",
        "*/config.yaml",
        "*/traces/test/*",
        "*/scores/*",
        *(f"*/translations/test/{name}" for name in ("hypotheses.txt", "details.jsonl", "trees.jsonl", "truth.jsonl")),
    )
    found = {path for pattern in kept for path in (root / "demo").glob(pattern) if path.is_file()}
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(found)}


def _same(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert list(one) == list(other)
    assert [name for name in one if one[name] != other[name]] == []


def _start(root: Path, seconds_a_step: float, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(settings=SMALL), str(root), str(seconds_a_step)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,
    )


def test_the_same_seed_gives_the_same_bytes_killed_or_not(small, tmp_path):
    said = []
    demo.build(tmp_path / "one", say=said.append)
    whole = _bytes(tmp_path / "one")
    assert demo.complete(tmp_path / "one")
    assert {Path(name).name for name in whole} >= {
        "train.en",
        "joint.model",
        "weights.safetensors",
        "hypotheses.txt",
        "details.jsonl",
        "trees.jsonl",
        "index.json",
    }
    assert [line.split()[0] for line in said if " bleu " in line][-3:] == list(demo.SYSTEMS)

    process = _start(tmp_path / "two", 0.2, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    first = tmp_path / "two" / "demo" / demo.SYSTEMS[0]
    until = time.monotonic() + 120
    while not list(first.glob("state/step-*2/progress.json")):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not finished(first), "it was to be killed in the middle of training"
    assert not demo.complete(tmp_path / "two")

    said.clear()
    demo.build(tmp_path / "two", say=said.append)
    assert "Training transformer" in said
    _same(whole, _bytes(tmp_path / "two"))
    steps = [event["step"] for event in open_run(first).events() if event["event"] == "train"]
    assert steps == [1, 2, 3, 4], "each step stands in the log once"


def test_a_demo_that_is_there_stays_as_it_is(demo_runs):
    before = {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*") if path.is_file()}
    said = []
    demo.build(demo_runs, say=said.append)
    assert {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*") if path.is_file()} == before
    assert not [line for line in said if line.startswith(("Training", "Translating", "Writing"))]


def test_what_a_demo_lacks_is_made_again(copied_runs):
    """Removing one product brings that one back, from the same weights the same bytes."""
    run = copied_runs / "demo" / "future-cost-1"
    index = (run / "traces" / "test" / "index.json").read_bytes()
    (run / "traces" / "test" / "index.json").unlink()
    assert not demo.complete(copied_runs)
    before = _bytes(copied_runs)
    demo.build(copied_runs, say=lambda _: None)
    assert demo.complete(copied_runs)
    assert (run / "traces" / "test" / "index.json").read_bytes() == index
    after = _bytes(copied_runs)
    _same(before, {name: content for name, content in after.items() if name in before})


def test_the_demo_is_of_documents_whose_truth_is_known(demo_runs):
    translations = open_run("demo/transformer", demo_runs).translations("test")
    assert len(translations.truth) == len(translations) == len(translations.test_set.documents)
    assert translations.has_trees
