"""The exhibits: small trained runs, packed so that an installation without runs of its own has something to show.

    data/exhibits/{GRID.NAME.safetensors, GRID.tar.xz}  weights in half precision, and everything else of a grid's runs
    CACHE/exhibits-DIGEST/GRID/{NAME/, data/}           the same as ordinary runs, unpacked once

A grid is called `exhibits`, or after it, such as `exhibits-documents`.

The packed files, the package's or those in the folder WORKBENCH_EXHIBITS, are never changed. What pages store of these
runs goes into the user's cache folder CACHE.
`experiments.exhibits` makes the files. Knows files and names, not what a run is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from core_models.config import WEIGHTS
from core_models.resources import data_folder
from workbench.store.file_digests import digest_of

NAME = "exhibits"  # the folder of the runs, and so the beginning of their names
ARCHIVE = ".tar.xz"  # the end of its name
VARIABLE = "WORKBENCH_EXHIBITS"  # in the environment: another folder of such files, or "0" for no exhibits
WEIGHTS_TIME = 1_767_225_600  # seconds since 1970: the time of every weights file, which translations remember


def is_exhibit(name: str) -> bool:
    """Whether a run, or the folder of a grid, of this name may be an exhibit."""
    folder = name.partition("/")[0]
    return folder == NAME or folder.startswith(f"{NAME}-")


def weights_file(run: str) -> str:
    """The name of the file with the weights of an exhibit."""
    return f"{run.replace('/', '.')}.safetensors"


def root() -> Path | None:
    """The folder below which the exhibits are runs, unpacked at the first call; None if they are hidden or missing."""
    chosen = os.environ.get(VARIABLE)
    archives = sorted(Path(chosen or data_folder() / NAME).glob(f"{NAME}*{ARCHIVE}"))
    return _unpacked(tuple(archives)) if chosen != "0" and archives else None


def run_folder(folder: Path, below: Path | None = None) -> Path:
    """The folder of a run: the given one (below a runs folder), or the exhibit of this name if there is no such folder.

    Any run may have the name of an exhibit; the user's own come first.
    """
    place = folder if below is None else below / folder
    if folder.is_absolute() or ".." in folder.parts or not is_exhibit(folder.as_posix()) or place.exists():
        return place
    shown = root()
    return place if shown is None else shown / folder


@cache
def _unpacked(archives: tuple[Path, ...]) -> Path:
    digests = "".join(map(digest_of, archives))
    name = f"{NAME}-{hashlib.sha256(digests.encode()).hexdigest()[:16]}"
    target = user_cache_path("nmt-workbench", appauthor=False) / name
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=target.parent))
    except OSError:  # no folder of the user's can be written: for this process alone
        part = Path(tempfile.mkdtemp(prefix=f"{name}."))
        unpack(archives, part)
        return part
    try:
        unpack(archives, part)
        part.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another process was faster
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def unpack(archives: Iterable[Path], folder: Path) -> None:
    """Write the runs of archives, with the weights beside them, below a folder."""
    for archive in archives:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        for weights in sorted(archive.parent.glob(f"{archive.name.removesuffix(ARCHIVE)}.*.safetensors")):
            place = folder.joinpath(*weights.stem.split(".", 1), WEIGHTS)
            shutil.copyfile(weights, place)
            os.utime(place, (WEIGHTS_TIME, WEIGHTS_TIME))
