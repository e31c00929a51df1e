"""Train cells of finished grids again up to their first validation: does this code still train what is stored?

    python data/experiments/repeat_trainings.py claims-routing claims-layers --runs repeated
    python data/experiments/repeat_trainings.py claims-tatoeba-en-de --runs repeated --data FOLDER_WITH_ITS_FILES

One training of each system is repeated, the systems of a grid taking its seeds in turn. Writes
data/experiments/results/repeated-trainings.csv, a row a training: the dev loss at its first validation as it is stored
(`stored`) and as it is now (`repeated`), and the commit of the latter. Rows in the file stay; take them out to repeat
their trainings again. What begins from another grid's run needs that run in the folder of runs.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from core_models.resources import commit, data_folder
from core_models.training.progress import Progress
from workbench.experiments.data import prepare_data
from workbench.experiments.grid import Cell, cells, read_experiment
from workbench.experiments.grid_precision import with_precision
from workbench.experiments.train import new_run, train
from workbench.papers.experiment_differences import results_folder
from workbench.store.csv_cells import csv_text

FILE = "repeated-trainings.csv"
TRAINING = ["grid", "system", "seed"]


class Validated(Exception):
    """The first validation is in the log."""


def main(grids: Sequence[str], runs: Path, files: Path | None = None) -> None:
    path = results_folder() / FILE
    rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
    for grid in grids:
        experiment = read_experiment(data_folder() / "experiments" / f"{grid}.yaml")
        stored = pd.read_csv(results_folder() / f"{grid}.dev-losses.csv")
        first = stored.sort_values("step").drop_duplicates(["system", "seed"]).set_index(["system", "seed"])
        text = hashlib.sha256(experiment.data.model_dump_json().encode()).hexdigest()[:8]
        of_text = experiment.model_copy(update={"name": f"text-{text}"})  # grids of one text prepare it once
        for cell in _one_a_system(cells(of_text, runs), list(first.index)):
            training = {"grid": grid, "system": cell.system, "seed": cell.seed}
            begin = cell.settings.get("init_from")
            if begin is not None and not Path(begin).is_dir():
                print(f"{grid} {cell.name}: left out, it begins from {begin}", flush=True)
                continue
            if any(training.items() <= row.items() for row in rows):
                continue
            data = prepare_data(of_text, runs, files)
            step, loss = first.loc[(cell.system, cell.seed), ["step", "dev_loss"]]
            repeated = first_dev_loss(cell, data, int(step))
            rows.append({**training, "step": int(step), "stored": loss, "repeated": repeated, "commit": commit()})
            path.write_text(csv_text(pd.DataFrame(rows).sort_values(TRAINING)), encoding="utf-8")
            print(f"{grid} {cell.name}: {loss:.4f} stored, {repeated:.4f} now", flush=True)


def _one_a_system(of_grid: Sequence[Cell], stored: Sequence[tuple[str, int]]) -> list[Cell]:
    """Of each system with stored losses one cell: the first system's first seed, the second's second and so on."""
    chosen = []
    for number, system in enumerate(dict.fromkeys(cell.system for cell in of_grid)):
        trained = [cell for cell in of_grid if (cell.system, cell.seed) in stored and cell.system == system]
        chosen += trained[number % len(trained) :][:1] if trained else []
    return chosen


def first_dev_loss(cell: Cell, data: Path, step: int) -> float:
    """Train a cell until its validation at a step is done; returns the dev loss there. Removes the run."""
    shutil.rmtree(cell.folder, ignore_errors=True)
    experiment = cell.experiment
    settings = with_precision(cell, data, "cpu")
    run = new_run(cell.folder, experiment.systems[cell.system], data, settings, experiment.search)

    def report(progress: Progress, _steps: int, _latest: dict[str, float]) -> None:
        if progress.step > step:
            raise Validated

    with suppress(Validated):
        train(run, report, "cpu")
    validated = next(event for event in run.events() if event["event"] == "valid" and event["step"] == step)
    shutil.rmtree(cell.folder)
    return float(validated["main_loss"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grids", nargs="+", metavar="GRID")
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs, each removed when it is done")
    parser.add_argument("--data", type=Path, help="folder with the files of a grid that does not make its text")
    options = parser.parse_args()
    main(options.grids, options.runs, options.data)
