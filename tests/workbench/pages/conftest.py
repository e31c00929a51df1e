"""Runs folders that the app is told to use."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core_models.text.prepared import Prepared
from tests.workbench.papers.written_runs import written_run
from workbench.store.runs import Run


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
