"""Runs that tests read, trained once for all workers and kept while the code that trains them stays as it is.

Each is made in .pytest_cache/trained/DIGEST/NAME under a lock. A worker gets hard links to its files in a folder of its
own: what a test keeps beside a run is gone with the session. The folders of one digest lie beside each other in both
places, since a run finds its data by a relative path.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from filelock import FileLock

from tests.paths import ROOT

KEPT = ROOT / ".pytest_cache" / "trained"
MOST_DIGESTS = 2  # whose folders are kept, the newest
# What decides the bits of a run, or which files lie beside it.
DECISIVE = (
    "core_models",
    "workbench/store",
    "workbench/evaluation",
    "workbench/experiments",
    "data/experiments/demo.yaml",
    "tests/trained.py",
    "tests/conftest.py",
    "tests/core_models/conftest.py",
    "tests/workbench/conftest.py",
)


def shared(own: Path, name: str, build: Callable[[Path, Path], object]) -> Path:
    """The folder `own/name`, hard links to what `build` made for all workers.

    build(folder, beside): fills the folder; those that it needs, asked for before, lie in `beside` by their names.
    """
    beside = KEPT / digest()
    beside.mkdir(parents=True, exist_ok=True)
    with FileLock(KEPT / f"{digest()}-{name}.lock"):
        if not (beside / name).is_dir():
            _forget_older()
            unfinished = beside / f".{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            build(unfinished, beside)
            unfinished.rename(beside / name)
    if not (own / name).is_dir():
        shutil.copytree(beside / name, own / name, copy_function=os.link)
    return own / name


@cache
def digest() -> str:
    """Of the files that decide what is trained, and of PyTorch's version."""
    found = hashlib.sha256(torch.__version__.encode())
    for place in DECISIVE:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _forget_older() -> None:
    """Remove the folders of all but the newest digests; another session may still link from those."""
    folders = sorted(KEPT.glob("*/"), key=lambda folder: folder.stat().st_mtime)
    for folder in folders[:-MOST_DIGESTS]:
        shutil.rmtree(folder, ignore_errors=True)
