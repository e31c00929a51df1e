"""Do two versions of this code train the same? The first updates of each system of grids, at an earlier commit and now.

    python data/experiments/same_training.py claims-routing claims-layers --folder versions
    python data/experiments/same_training.py claims-tatoeba-en-de --folder versions --data FOLDER_WITH_ITS_FILES

The earlier commit is the one that first stored results of the grid; its code is checked out into the folder and trains
the grid's first seed for a few seconds, by the grid's file of that time. So does this code, by the file of now. What
begins from another run begins from random weights here. Writes data/experiments/results/same-training.csv, a row a
system: both commits, how many updates both did, and the largest relative difference of their losses, `difference`. Rows
in the file stay; take them out to train again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import yaml

from core_models.resources import commit
from core_models.training.events import read_events
from workbench.papers.experiment_differences import results_folder
from workbench.store.csv_cells import csv_text

LOG = "training.jsonl"
FILE = "same-training.csv"
MINUTES = 0.07  # of each training
PROJECT = Path(__file__).resolve().parents[2]


def main(grids: Sequence[str], folder: Path, files: Path | None = None) -> None:
    path = results_folder() / FILE
    rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
    for grid in grids:
        if any(row["grid"] == grid for row in rows):
            continue
        then = _git(PROJECT, "log", "--format=%H", "--reverse", "--", str(results_folder() / f"{grid}.cells.csv"))
        earlier = first_updates(grid, _checkout(folder, then.split()[0]), folder, files)
        now = first_updates(grid, PROJECT, folder, files)
        for system in [name for name in now if name in earlier]:
            pairs = list(zip(earlier[system], now[system], strict=False))
            difference = max(abs(old - new) / abs(old) for old, new in pairs)
            row = {"grid": grid, "system": system, "commit": then.split()[0], "commit_now": commit()}
            rows.append({**row, "updates": len(pairs), "difference": f"{difference:.1e}"})
            print(f"{grid} {system}: {difference:.1e} over {len(pairs)} updates", flush=True)
        path.write_text(csv_text(pd.DataFrame(rows)), encoding="utf-8")


def first_updates(grid: str, project: Path, folder: Path, files: Path | None) -> dict[str, list[float]]:
    """The training loss of each update by the code in a folder, by system; without those that it does not train."""
    described = yaml.safe_load((project / "data" / "experiments" / f"{grid}.yaml").read_text(encoding="utf-8"))
    runs = folder / "runs" / project.name
    text = hashlib.sha256(json.dumps(described["data"]).encode()).hexdigest()[:8]  # is prepared once for several grids
    cut = {**described, "name": f"text-{text}", "seeds": described["seeds"][:1]}
    cut["training"] = {**described["training"], "log_every": 1}
    cut.pop("begin_from", None)
    runs.mkdir(parents=True, exist_ok=True)
    (runs / f"{grid}.yaml").write_text(yaml.safe_dump(cut, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "workbench.cli", "experiment", "run", str(runs / f"{grid}.yaml")]
    command += ["--runs", str(runs), "--device", "cpu", "--max-minutes", str(MINUTES)]
    command += ["--data", str(files)] if files else []
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(project)}, cwd=project, stdout=subprocess.DEVNULL)
    losses = {}
    for system in cut["systems"]:
        run = runs / cut["name"] / system
        found = [event["main_loss"] for event in read_events(run / LOG) if event["event"] == "train"]
        if found:
            losses[system] = found
        shutil.rmtree(run, ignore_errors=True)
    return losses


def _checkout(folder: Path, version: str) -> Path:
    """A clone of this project at a commit, made if it is not there."""
    place = folder / version
    if not place.is_dir():
        _git(folder, "clone", "-q", "--no-checkout", str(PROJECT), str(place))
        _git(place, "checkout", "-q", version)
    return place


def _git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grids", nargs="+", metavar="GRID")
    parser.add_argument("--folder", type=Path, required=True, help="for the earlier code and the runs of both")
    parser.add_argument("--data", type=Path, help="folder with the files of a grid that does not make its text")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    main(options.grids, options.folder.resolve(), options.data and options.data.resolve())
