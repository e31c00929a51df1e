"""Time of listing many runs, for a command, for the app's first view, and after a change of one run.

The runs are made up: a configuration as training writes it, with empty weights and a translated test set of one
sentence. Knows nothing of the browser.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from workbench.benchmark.scale.stages import Stages, measure_apart


def make_many_runs(root: Path, runs: int) -> list[Path]:
    """Write made-up trained runs below `root`, a hundred in each experiment."""
    from core_models.config import CONFIG, TRAINING_LOG, WEIGHTS, RunConfig
    from core_models.settings import parse, write_yaml

    log = "".join(f'{{"event": "valid", "step": {step}, "main_loss": {1 / step}}}\n' for step in range(100, 1001, 100))
    folders = [root / f"experiment-{number // 100:04d}" / f"run-{number:05d}" for number in range(runs)]
    for number, folder in enumerate(folders):
        for inner in ("vocabulary", "translations/test"):
            (folder / inner).mkdir(parents=True)
        for side in ("source", "target"):
            (folder / "vocabulary" / f"{side}.model").touch()
        (folder / WEIGHTS).touch()
        sections = {"model": {"preset": "small"}, "training": {"seed": number, "max_steps": 1000}}
        config = parse(
            RunConfig, {"name": folder.name, "system": "transformer", "data": "../data/prepared", **sections}
        )
        write_yaml(folder / CONFIG, config.model_dump(mode="json", exclude_none=True))
        (folder / TRAINING_LOG).write_text(log, encoding="utf-8")
        file = (folder / WEIGHTS).stat()
        meta = {"test": "test", "sentences": 1, "weights_file": [file.st_size, file.st_mtime_ns]}
        (folder / "translations" / "test" / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        for name in ("sources", "hypotheses", "references"):
            (folder / "translations" / "test" / f"{name}.txt").write_text("a b c d\n", encoding="utf-8")
    return folders


def measure(runs: int) -> list[dict[str, Any]]:
    """Measure all stages in this process, one row each."""
    from workbench.evaluation.run_table import runs_table
    from workbench.store.listing import listing
    from workbench.store.runs import list_runs

    stages = Stages()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with stages.stage(f"make {runs:,} runs"):
            folders = make_many_runs(root, runs)
        with stages.stage("list them, for the first time"):
            list_runs(root)
        with stages.stage("what they have translated"):
            listing(root)
        with stages.stage("again, one has changed"):
            _change(folders[0])
            listing(root)
        with stages.stage("again, none has changed"):
            runs_below = listing(root)
        with stages.stage("table of the page Runs"):
            runs_table(runs_below.runs, "test")
        with stages.stage("table of the page Runs, one has changed"):
            _change(folders[0])
            runs_table(listing(root).runs, "test")
    return stages.rows


def _change(folder: Path) -> None:
    """Write a run's configuration again with another seed."""
    from core_models.config import CONFIG

    path = folder / CONFIG
    text = path.read_text(encoding="utf-8")
    part = path.with_name("config.yaml.part")
    part.write_text(text.replace("  seed: ", "  seed: 1"), encoding="utf-8")
    os.replace(part, path)


def measure_runs(runs: int) -> list[dict[str, Any]]:
    """Run `measure` in a process of its own."""
    return measure_apart(__name__, {}, 1, runs=runs)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
