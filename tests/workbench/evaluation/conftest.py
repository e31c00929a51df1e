"""A run whose search and forced passes take a few sentences at a time."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from core_models import load
from workbench.evaluation import translate
from workbench.store.runs import Run, open_run


def in_small_batches(run: Run, folder: Path, batch_tokens: int = 200) -> Run:
    """A copy of a run with small batches; its data stays where it is."""
    shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("state"))
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    config["data"] = str(run.config.data_folder(run.folder))
    config["search"]["batch_tokens"] = batch_tokens
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    test_set = translate.test_set(open_run(folder), "test")[0]
    assert len(load(folder).batches(test_set.sources, test_set.documents)) > 2
    return open_run(folder)


@pytest.fixture
def batched_run(taught_run, tmp_path) -> Run:
    return in_small_batches(taught_run, tmp_path / "alone")


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a result, without the time it took."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    if "meta.json" in found:
        found["meta.json"] = json.dumps({**json.loads(found["meta.json"]), "seconds": 0}).encode()
    return found
