"""Runs that were never trained, with translations that a test writes: what they score is known beforehand."""

import shutil
from pathlib import Path

from core_models.settings import read_yaml, write_yaml
from core_models.text.prepared import Prepared
from workbench.experiments.train import new_run
from workbench.store.runs import Run, open_run
from workbench.store.translation_writer import write_hypotheses
from workbench.store.translations import TestSet as TestedOn

SPOILED = "falsch"


def written_run(root: Path, name: str, system: str, prepared: Prepared, spoiled: int = 0) -> Run:
    """A run below `root` whose translations of `test` are the references, the first words of some of them spoiled."""
    text = prepared.test("test")
    new_run(root / name, system, prepared.folder, {"max_steps": 1})
    lines = [
        " ".join([SPOILED, *line.split()[1:]]) if number < spoiled else line for number, line in enumerate(text.targets)
    ]
    run = open_run(name, root)
    write_hypotheses(run, TestedOn("test", text.sources, text.targets, text.documents), lines, "a test")
    return open_run(name, root)


def seeded(run: Run, folder: Path, seed: int) -> Run:
    """A copy of a run that says that it was trained with another seed."""
    shutil.copytree(run.folder, folder)
    config = read_yaml(folder / "config.yaml")
    write_yaml(folder / "config.yaml", {**config, "training": {**config["training"], "seed": seed}})
    return open_run(folder)
