"""The comparison of two versions of the code: equal where nothing changed, not where an initial size did."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.paths import ROOT

SCRIPT = Path("data/experiments/same_training.py")
RESULTS = Path("data/experiments/results")
GRID = {
    "name": "grid",
    "data": {"pieces": 100, "kind": "bpe", "controlled": {"sentences": 60, "dev": 4, "test": 4}},
    "systems": {"plain": "transformer:preset=tiny", "recurrent": "rnnsearch:preset=tiny"},
    "seeds": [3, 1],
    "training": {"max_steps": 9, "batch_tokens": 256, "precision": "float32"},
}


def _git(project: Path, *command: str) -> None:
    author = ("-c", "user.name=tests", "-c", "user.email=tests@example.org")
    subprocess.run(["git", *author, *command], cwd=project, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path) -> Path:
    """This code in a repository of its own, whose first commit stored results of a grid."""
    project = tmp_path / "project"
    for folder in ("core_models", "workbench", "analyses", "data/controlled"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (project / RESULTS).mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, project / SCRIPT)
    (project / SCRIPT.with_name("grid.yaml")).write_text(yaml.safe_dump(GRID, sort_keys=False), encoding="utf-8")
    (project / RESULTS / "grid.cells.csv").write_text("system,seed,state\nplain,3,done\n", encoding="utf-8")
    _git(project, "init", "-q")
    _git(project, "add", "-A")
    _git(project, "commit", "-q", "-m", "results")
    return project


@pytest.mark.slow
def test_a_changed_initial_size_is_seen_in_the_first_updates_of_what_has_it(project, tmp_path):
    code = project / "core_models" / "backbones" / "transformer.py"
    before, size = code.read_text(encoding="utf-8"), "std=module.embedding_dim**-0.5"
    assert size in before
    code.write_text(before.replace(size, "std=module.embedding_dim**-0.4"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(project)}
    command = [sys.executable, str(SCRIPT), "grid", "--folder", str(tmp_path / "versions")]
    subprocess.run(command, cwd=project, env=environment, check=True, timeout=300)
    table = pd.read_csv(project / RESULTS / "same-training.csv").set_index("system")
    assert table["updates"].tolist() == [9, 9]
    assert table.loc["plain", "difference"] > 1e-3
    assert table.loc["recurrent", "difference"] == 0
    assert table["commit_now"].str.removesuffix("-dirty").tolist() == table["commit"].tolist()
