"""Preparation of an experiment's text, once, from files or from the controlled corpus, in ROOT/NAME/data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from core_models.files.atomic_files import atomic_replace
from core_models.resources import data_folder
from workbench.experiments.grid import PACKAGED, TEXT_SETTINGS, DataFiles, Experiment, Pair
from workbench.store.runs import RunError

Say = Callable[[str], None]


def prepare_data(experiment: Experiment, root: Path, files: Path | None, say: Say = print) -> Path:
    """The folder of an experiment's prepared text, made from `files` or generated if it does not exist yet."""
    folder, data = root / experiment.name / "data", experiment.data
    if _is_prepared(folder):
        if changes := experiment.text_changes(root):
            raise RunError(
                f"{folder}: prepared with other settings: {', '.join(changes)}; give the grid another name, or remove "
                "this folder and what was trained on it"
            )
        return folder
    if files is None and data.controlled is None:
        raise RunError(f"{experiment.name}: its text is not prepared yet; give the folder of its files with --data")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(".data.lock")):
        if not _is_prepared(folder):  # another process may have prepared it meanwhile
            with atomic_replace(root / experiment.name / TEXT_SETTINGS) as path:
                path.write_text(data.model_dump_json(), encoding="utf-8")
            if files is None or data.controlled is not None:
                _prepare_controlled(folder, data, say)
            else:
                _prepare_files(folder, data, files)
    return folder


def _is_prepared(folder: Path) -> bool:
    from core_models.text.parallel import TextError
    from core_models.text.prepared import Prepared

    try:
        Prepared.open(folder)
    except TextError:
        return False
    return True


def _prepare_files(folder: Path, data: DataFiles, files: Path) -> None:
    from core_models.text.parallel import read_parallel
    from core_models.text.prepared import prepare

    def read(pair: Pair | None, name: str) -> Any:
        assert pair is not None  # the grid was checked
        return read_parallel(_place(pair[0], files), _place(pair[1], files), name=name)

    texts = (
        read(data.train, "train"),
        read(data.dev, "dev"),
        {name: read(pair, name) for name, pair in data.tests.items()},
    )
    source, _, target = data.languages.partition("-")
    prepare(folder, *texts, data.pieces, data.kind, data.joint, source, target)


def _place(file: str, files: Path) -> Path:
    """A file below `files`, or of the package."""
    return data_folder() / file.removeprefix(PACKAGED) if file.startswith(PACKAGED) else files / file


def _prepare_controlled(folder: Path, data: DataFiles, say: Say) -> None:
    """Write a controlled corpus beside the folder, and its prepared form; print the scores of its oracles."""
    from core_models.text import controlled
    from core_models.text.parallel import read_parallel
    from core_models.text.prepared import prepare

    assert data.controlled is not None
    say("Writing the controlled corpus: English to German-like, its truth known")
    corpus, written = controlled.generate(**data.controlled.model_dump()), folder.with_name("corpus")
    controlled.write(corpus, written)
    say(controlled.format_oracles(controlled.oracles(corpus)))
    tests = data.test_names
    text = {
        name: read_parallel(written / f"{name}.en", written / f"{name}.de", name=name)
        for name in ("train", "dev", *tests)
    }
    prepare(
        folder,
        text["train"],
        text["dev"],
        {name: text[name] for name in tests},
        pieces=data.pieces,
        kind=data.kind,
        joint=data.joint,
        source_language="en",
        target_language="de",
        truths={name: written / f"{name}.truth.jsonl" for name in ("dev", *tests)},
    )
