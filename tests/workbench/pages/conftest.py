"""Runs folders that the app is told to use."""

import os
import shutil
from pathlib import Path

import pytest

from core_models.text.binary import Prepared
from tests.workbench.papers.written_runs import written_run
from workbench.runs import Run


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
def capsule_runs(runs_root, demo_runs) -> list[Run]:
    """Runs of qcn with two, four and eight capsules below the runs folder, the second of which translates best."""
    prepared = Prepared.open(demo_runs / "demo" / "data")
    return [
        written_run(runs_root, f"scope/capsules-{count}", f"qcn:preset=tiny,capsules={count}", prepared, spoiled)
        for count, spoiled in ((2, 8), (4, 2), (8, 5))
    ]
