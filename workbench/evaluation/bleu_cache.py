"""BLEU that was counted of a run before, found again without reading a text: RESULTS/known_scores/TEST.json.

It is known as long as the files of the texts have the sizes and times that they had, and sacreBLEU its version: no text
is read, so a number that somebody wrote into this file is not found out, and none is ever taken from here but for the
list of runs. Knows files; how a score is counted is the business of `evaluation`, which keeps it here.
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
    """Corpus BLEU as `evaluation` counts it by default; None where it was not counted since the texts changed."""
    with contextlib.suppress(OSError):  # a text that is there and cannot be looked at
        return SCORES.load(run, stamp(run, test), test)
    return None


def keep(run: Run, test: str, of: Inputs, bleu: float) -> None:
    """Keep a score; of: the `stamp` before the texts were read."""
    if known(run, test) != bleu:
        SCORES.save(run, of, bleu, test)


def stamp(run: Run, test: str) -> dict[str, list[int] | str]:
    """The stamp of each text that BLEU is counted from, and who counts; of texts that are not there none."""
    found = {path.name: stamp_of(path) for path in texts(run, test) if path.is_file()}
    return {"sacrebleu": _counted_by(), **found}


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
