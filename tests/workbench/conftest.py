"""Runs for the tests of the workbench: the demo cut down to seconds, built once per session and never written to."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from core_models.text.prepared import Prepared
from tests.trained import shared
from tests.workbench.app.browsing import BROWSER, FLAGS
from tests.workbench.papers.written_runs import written_run
from workbench.evaluation import scoring, translate
from workbench.experiments import demo
from workbench.experiments.grid import read_experiment
from workbench.experiments.runner import run_experiment
from workbench.experiments.train import new_run, train
from workbench.store.runs import Run, open_run

SYSTEMS = ("transformer", "future-cost-1", "future-cost-2")


def demo_grid(path: Path, changes: dict[str, dict], systems: tuple[str, ...] = SYSTEMS) -> Path:
    """The demo's grid cut down to some systems, with settings of its sections changed."""
    grid = yaml.safe_load(demo.grid_file().read_text(encoding="utf-8"))
    grid["systems"] = {name: grid["systems"][name] for name in systems}
    for section, settings in changes.items():
        grid[section] |= settings
    path.write_text(yaml.safe_dump(grid, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def demo_runs(own) -> Path:
    """A runs folder with the whole demo: three systems, a test set of 30 sentences with trees and traces."""
    # Hardly trained, the systems babble, but at length: that is what trees, traces and pages have to show.
    training = {"max_steps": 6, "warmup": 1, "validate_every": 2, "log_every": 1, "batch_tokens": 256}
    small = {
        "data": {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 300, "dev": 12, "test": 30}},
        "training": {**training, "learning_rate": 3e-4},
        "search": {"beam": 3, "max_length": 16},
    }

    def build(root: Path, beside: Path) -> None:
        grid = demo_grid(beside / "demo-runs.yaml", small)
        run_experiment(read_experiment(grid), root, None, lambda message: None, device="cpu")  # no process to wait for
        demo.build(root, say=lambda message: None, file=grid)  # what is left: the scores

    demo_grid(own / "demo-runs.yaml", small)  # for tests that go on with it
    return shared(own, "demo-runs", build)


@pytest.fixture
def copied_runs(demo_runs, tmp_path) -> Path:
    """A copy of the runs folder, to be spoiled; without the states that training goes on from, most of its bytes."""
    return Path(shutil.copytree(demo_runs, tmp_path / "runs", ignore=shutil.ignore_patterns("state")))


@pytest.fixture
def graded_runs(copied_runs) -> list[Run]:
    """The three systems with the references as translations, ever fewer words of them spoiled; scored once."""
    runs = []
    for name, spoiled in (("transformer", 0.6), ("future-cost-1", 0.4), ("future-cost-2", 0.2)):
        run = open_run(copied_runs / "demo" / name)
        drawn = random.Random(1)
        folder = run.folder / "translations" / "test"
        lines = (folder / "references.txt").read_text(encoding="utf-8").splitlines()
        worse = [" ".join("falsch" if drawn.random() < spoiled else word for word in line.split()) for line in lines]
        (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in worse), encoding="utf-8")
        runs.append(run)
    scoring.score_table(runs, "test", samples=10)
    return runs


@pytest.fixture(scope="session")
def taught_run(prepared, own) -> Run:
    """A tiny Transformer that knows the words of `prepared` and mostly ends its sentences; never written to."""
    training = {"max_steps": 120, "warmup": 5, "learning_rate": 3e-3, "batch_tokens": 500, "log_every": 40}
    search = {"beam": 5, "penalty": "power", "max_length": 30}

    def build(folder: Path, beside: Path) -> None:
        train(
            new_run(folder / "transformer", "transformer:preset=tiny", beside / "prepared", training, search),
            device="cpu",
        )

    return open_run(shared(own, "taught", build) / "transformer")


def run_on_demo(
    own: Path, name: str, system: str, training: dict, search: dict, tests: tuple[str, ...] = ("test",), **changes: int
) -> Run:
    """A run demo/NAME on the data of `demo_runs`, which was asked for before, and its translations of test sets."""

    def build(folder: Path, beside: Path) -> None:
        run = new_run(folder / "demo" / name, system, beside / "demo-runs" / "demo" / "data", training, search)
        train(run, device="cpu")
        for test in tests:
            translate.translate_test(run, *translate.test_set(run, test), **changes)

    return open_run(shared(own, name, build) / "demo" / name)


@pytest.fixture(scope="session")
def routed_run(demo_runs, own) -> Run:
    """A hardly trained run of em-routing on the demo's data, two checkpoints kept, its test set translated."""
    system = "em-routing:preset=tiny,encoder_layers=3,decoder_layers=2,capsules=8,iterations=3"
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 256, "keep_every": 1, "learning_rate": 0.01}
    return run_on_demo(own, "em-routing", system, training, {"max_length": 12})


@pytest.fixture(scope="session")
def guided_run(demo_runs, own) -> Run:
    """A hardly trained run of gdr-bow-bca on the demo's data, its test set translated."""
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 256, "learning_rate": 0.01}
    return run_on_demo(own, "gdr-bow-bca", "gdr-bow-bca:preset=tiny", training, {"max_length": 12})


@pytest.fixture(scope="session")
def context_runs(demo_runs, own) -> list[Run]:
    """Hardly trained runs of qcn-reg, han and document-transformer on the demo's data, its test set translated."""
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 400, "learning_rate": 0.01}
    return [
        run_on_demo(own, system, f"{system}:preset=tiny", training, {"max_length": 12})
        for system in ("qcn-reg", "han", "document-transformer")
    ]


@pytest.fixture(scope="session")
def offline_run(demo_runs, own) -> Run:
    """A hardly trained run of san-encoder that reads two sentences before one and two after, on the demo's data, its
    test set translated."""
    system = "san-encoder:preset=tiny,memory=offline,context_sentences=2"
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 400, "learning_rate": 0.01}
    return run_on_demo(own, "san", system, training, {"max_length": 12})


@pytest.fixture(scope="session")
def layered_run(demo_runs, own) -> Run:
    """A run of pfrnn-loss that has learned to end its sentences, on the demo's data; its test set and dev set
    translated, with n-best lists."""
    training = {"max_steps": 60, "warmup": 5, "batch_tokens": 500, "learning_rate": 5e-3, "log_every": 20}
    system, tests = "pfrnn-loss:preset=tiny", ("test", "dev")
    return run_on_demo(own, "pfrnn-loss", system, training, {"max_length": 30}, tests, beam=4, n_best=4)


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium or google-chrome is installed; the browser test must run here")
        pytest.skip("no chromium or google-chrome is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def runs_root(tmp_path, monkeypatch) -> Path:
    """An empty runs folder."""
    root = tmp_path / "runs"
    root.mkdir()
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    return root


@pytest.fixture
def with_demo(runs_root, demo_runs) -> Path:
    """The runs folder with the demo in it, hard links to its files; its runs are for reading."""
    shutil.copytree(demo_runs / "demo", runs_root / "demo", copy_function=os.link)
    return runs_root


@pytest.fixture
def with_context(with_demo, context_runs) -> Path:
    """The runs folder with the demo and copies of the runs that read the sentences before."""
    for run in context_runs:
        shutil.copytree(run.folder, with_demo / run.name)
    return with_demo


@pytest.fixture
def runs_by(runs_root, demo_runs) -> Callable[..., list[Run]]:
    """`runs_by(option, *values)`: runs of qcn with three values of an option, the second of which translates best."""
    prepared = Prepared.open(demo_runs / "demo" / "data")

    def runs(option: str, *values: int) -> list[Run]:
        return [
            written_run(runs_root, f"scope/{option}-{value}", f"qcn:preset=tiny,{option}={value}", prepared, spoiled)
            for value, spoiled in zip(values, (8, 2, 5), strict=True)
        ]

    return runs
