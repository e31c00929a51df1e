"""Cache of a run's BLEU that is checked without reading any text: RESULTS/known_scores/TEST.json.

A score is valid while the text files keep their sizes and times, and sacreBLEU its version. Since no text is read, a
number written into this file by hand would not be noticed; scores are therefore taken from here for the list of runs
only. Knows files; `evaluation` counts the score and stores it here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workbench.evaluation.result_cache import Inputs, ResultCache
from workbench.store.file_digests import stamp_of
from workbench.store.runs import Run


def _parse(content: Mapping[str, Any]) -> float:
    bleu = float(content["bleu"])
    if not 0 <= bleu <= 100 + 1e-6:
        raise ValueError(f"{bleu} is no BLEU")
    return bleu


SCORES = ResultCache("known_scores/{}.json", lambda bleu: {"bleu": bleu}, _parse)


def known(run: Run, test: str) -> float | None:
    """Corpus BLEU with the default settings of `evaluation`; None if not counted since the texts changed."""
    with contextlib.suppress(OSError):  # an existing text without permission to read
        return SCORES.load(run, stamp(run, test), test)
    return None


def keep(run: Run, test: str, inputs: Inputs, bleu: float) -> None:
    """Store a score; inputs: the `stamp` taken before the texts were read."""
    if known(run, test) != bleu:
        SCORES.save(run, inputs, bleu, test)


def stamp(run: Run, test: str) -> dict[str, list[int] | str]:
    """The stamp of each existing text that BLEU is counted from, and the version of sacreBLEU."""
    stamps = {path.name: stamp_of(path) for path in texts(run, test) if path.is_file()}
    return {"sacrebleu": _counted_by(), **stamps}


def texts(run: Run, test: str) -> list[Path]:
    """The files that BLEU is counted from."""
    folder = run.translations_folder(test)
    names: list[str] = []
    with contextlib.suppress(OSError):  # not translated
        names = sorted(name for name in os.listdir(folder) if name.startswith("references") and name.endswith(".txt"))
    return [folder / name for name in ("hypotheses.txt", *names)]


@cache
def _counted_by() -> str:
    return version("sacrebleu")
