"""The app on the demo, for tests with a real browser."""

import os
import shutil
from pathlib import Path

import pytest

from tests.workbench.app.app_server import serving
from tests.workbench.app.browsing import Place
from workbench.store import rating_studies
from workbench.store.runs import open_run


@pytest.fixture(scope="module")
def demo(demo_runs, tmp_path_factory):
    """The app on the demo; what it keeps beside the runs stays its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(demo_runs, folder / "runs", copy_function=os.link)
    _begin_training(folder / "runs" / "demo")
    with serving(folder) as server:
        yield Place(server.address, server.log, ["demo/transformer", "demo/future-cost-2"], "test")


def _begin_training(demo: Path) -> None:
    """A run that is named after a baseline, first by name among those, and in training: its log has no end."""
    shutil.copytree(demo / "transformer", demo / "rnnsearch", copy_function=os.link)
    log = demo / "rnnsearch" / "training.jsonl"
    logged = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.unlink()
    log.write_text("".join(line for line in logged if '"event": "end"' not in line), encoding="utf-8")


@pytest.fixture(scope="module")
def address(demo) -> str:
    return demo.address


@pytest.fixture(scope="module")
def study(demo) -> rating_studies.Study:
    """A study of all sentences, for the page Human rating."""
    root = demo.log.parent / "runs"
    return rating_studies.create(root, "study", [open_run(root / name) for name in demo.runs], demo.test, sentences=30)
