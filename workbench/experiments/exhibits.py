"""Make the exhibits (see `store.exhibits`) from the runs of their grids.

Weights are rounded to half precision first, and translations, beam trees, traces and stored results come from the
rounded ones. The same runs give the same files, up to the times of translating.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from core_models.config import CONFIG, WEIGHTS
from core_models.resources import data_folder
from workbench.experiments.grid import cells, read_experiment
from workbench.experiments.runner import TRACES
from workbench.store import exhibits
from workbench.store.runs import Run, RunError, open_run

Say = Callable[[str], None]
TREES = 100  # sentences whose beam tree is kept
_TIME = (2026, 1, 1, 0, 0, 0)  # of every entry of the archive


def grid_files() -> list[Path]:
    """The experiment files of the exhibits: single sentences, and documents."""
    return [data_folder() / "experiments" / name for name in ("exhibits.yaml", "exhibits-documents.yaml")]


def pack(
    files: Sequence[Path],
    runs: Path,
    out: Path,
    say: Say = print,
    store: Sequence[Callable[[Sequence[Run], str], None]] = (),
) -> Path:
    """Make the exhibits from the finished runs of grids below `runs`; returns the archive in the folder `out`.

    store: functions called with the rounded runs of each grid, with their checkpoints, and its inspected test set, to
    store what pages show of them beside them; checkpoints are not packed. Raises RunError for unfinished runs, and for
    a grid with another name than exhibits or exhibits-….
    """
    experiments = [read_experiment(file) for file in files]
    for file, experiment in zip(files, experiments, strict=True):
        if not exhibits.is_exhibit(experiment.name):
            raise RunError(
                f"{file}: its runs would be {experiment.name}/NAME; name the grid {exhibits.NAME} or {exhibits.NAME}-…"
            )
        for cell in cells(experiment, runs):
            if cell.state != "done":
                raise RunError(f"{cell.folder} is {cell.state}; finish it: workbench experiment run {file}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as staged:
        stage = Path(staged)
        for experiment in experiments:
            folder = stage / experiment.name
            grid = cells(experiment, runs)
            shutil.copytree(grid[0].folder.parent / "data", folder / "data")
            rounded = [_rounded(Run(cell.folder, cell.name), folder / cell.name, stage) for cell in grid]
            for run in rounded:
                say(run.name)
                _translate(run, experiment.data.test_names, experiment.inspect or "")
            for store_results in store:
                store_results(rounded, experiment.inspect or experiment.data.test_names[0])
            for run in rounded:
                shutil.copyfile(run.weights, out / exhibits.weights_file(run.name))
                shutil.rmtree(run.folder / "checkpoints")
        return _zip(stage, out / exhibits.ARCHIVE)


def _rounded(run: Run, folder: Path, stage: Path) -> Run:
    """A copy of a run with its weights and checkpoints in half precision, without the state of its training."""
    from core_models.checkpoint import read_tensors, write_tensors

    def write_rounded(weights: Path, place: Path) -> None:
        write_tensors(place, {name: tensor.half() for name, tensor in read_tensors(weights).items()})

    (folder / "checkpoints").mkdir(parents=True)
    for checkpoint in sorted((run.folder / "checkpoints").glob("step-*.safetensors")):
        write_rounded(checkpoint, folder / "checkpoints" / checkpoint.name)
    shutil.copyfile(run.folder / CONFIG, folder / CONFIG)
    shutil.copyfile(run.log, folder / run.log.name)
    shutil.copytree(run.folder / "vocabulary", folder / "vocabulary")
    write_rounded(run.weights, folder / WEIGHTS)
    os.utime(folder / WEIGHTS, (exhibits.WEIGHTS_TIME, exhibits.WEIGHTS_TIME))
    return open_run(folder.relative_to(stage).as_posix(), stage)


def _translate(run: Run, tests: Sequence[str], inspect: str) -> None:
    """Translate the test sets, with beam trees of the first sentences and traces of the inspected one."""
    import core_models
    from workbench.evaluation.translate import test_set, trace_test, translate_test

    translator = core_models.load(run.folder)
    for name in tests:
        test, truth = test_set(run, name)
        translations = translate_test(run, test, truth, trees=name == inspect, translator=translator)
        if name == inspect:
            _keep_trees(translations.folder)
            trace_test(run, translations, TRACES, translator=translator)


def _keep_trees(folder: Path) -> None:
    """Keep the beam trees of the first sentences of translations, with four digits."""
    records = (folder / "trees.jsonl").read_bytes().splitlines()[:TREES]
    lines = [json.dumps(_short(json.loads(record)), separators=(",", ":")).encode() + b"\n" for record in records]
    (folder / "trees.jsonl").write_bytes(b"".join(lines))
    np.save(folder / "trees.npy", np.cumsum([0, *map(len, lines)]), allow_pickle=False)


def _short(value: object) -> object:
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return round(value, 4) if isinstance(value, float) else value


def _zip(stage: Path, archive: Path) -> Path:
    """All files but weights, which are files of their own, in an archive whose bytes depend on theirs alone."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as packed:
        for path in sorted(stage.rglob("*")):
            if path.is_file() and path.name != WEIGHTS and not path.name.endswith(".lock"):
                entry = zipfile.ZipInfo(path.relative_to(stage).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_LZMA
                packed.writestr(entry, path.read_bytes())
    return archive
