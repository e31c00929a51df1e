"""Make exhibits (see `store.exhibits`) from the runs of a grid.

Weights are rounded to half precision first, and translations, beam trees, traces and stored results come from the
rounded ones. The same runs give the same files, up to the times of translating.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tarfile
import tempfile
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


def grid_files() -> list[Path]:
    """The experiment files of the exhibits: single sentences, and documents."""
    return [data_folder() / "experiments" / name for name in ("exhibits.yaml", "exhibits-documents.yaml")]


def pack(
    file: Path,
    runs: Path,
    out: Path,
    say: Say = print,
    store: Sequence[Callable[[Sequence[Run], str], None]] = (),
) -> Path:
    """Make the exhibits from the finished runs of a grid below `runs`; returns the archive in the folder `out`.

    store: functions called with the rounded runs, with their checkpoints, and the inspected test set, to store what
    pages show of them beside them; checkpoints are not packed. Raises RunError for unfinished runs, and for a grid with
    another name than exhibits or exhibits-….
    """
    experiment = read_experiment(file)
    if not exhibits.is_exhibit(experiment.name):
        raise RunError(f"{file}: {experiment.name} is no name of exhibits; name the grid exhibits or exhibits-…")
    grid = cells(experiment, runs)
    if unfinished := [cell for cell in grid if cell.state != "done"]:
        raise RunError(f"{unfinished[0].folder} is {unfinished[0].state}; finish it: workbench experiment run {file}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as staged:
        stage = Path(staged)
        folder = stage / experiment.name
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
        return _archive(stage, out / f"{experiment.name}{exhibits.ARCHIVE}")


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
    """Translate the test sets; the inspected one with n-best lists, traces, and beam trees of the first sentences."""
    import core_models
    from workbench.evaluation.translate import test_set, trace_test, translate_test

    translator = core_models.load(run.folder)
    for name in tests:
        test, truth = test_set(run, name)
        inspected = name == inspect
        n_best = translator.search.beam if inspected else None
        translations = translate_test(run, test, truth, trees=inspected, translator=translator, n_best=n_best)
        if inspected:
            trace_test(run, translations, TRACES, translator=translator)
            lines = _shorten(translations.folder / "trees.jsonl", TREES)
            np.save(translations.folder / "trees.npy", np.cumsum([0, *map(len, lines)]), allow_pickle=False)
        _shorten(translations.folder / "details.jsonl")


def _shorten(file: Path, most: int | None = None) -> list[bytes]:
    """Keep the first `most` records of a file, all by default, with four digits; returns its lines."""
    records = file.read_bytes().splitlines()[:most]
    lines = [json.dumps(_short(json.loads(record)), separators=(",", ":")).encode() + b"\n" for record in records]
    file.write_bytes(b"".join(lines))
    return lines


def _short(value: object) -> object:
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return round(value, 4) if isinstance(value, float) else value


def _archive(stage: Path, archive: Path) -> Path:
    """All files but weights, which are files of their own, in an archive whose bytes depend on theirs alone."""
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as packed,
    ):
        for path in sorted(stage.rglob("*")):
            if path.is_file() and path.name != WEIGHTS and not path.name.endswith(".lock"):
                entry = tarfile.TarInfo(path.relative_to(stage).as_posix())
                entry.size, entry.mtime = path.stat().st_size, exhibits.WEIGHTS_TIME
                with path.open("rb") as file:
                    packed.addfile(entry, file)
    return archive
