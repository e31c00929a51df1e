"""BLEU that was counted of a run before, found again without reading a text: RESULTS/known_scores/TEST.json.

It is known as long as the files of the texts have the sizes and times that they had, and sacreBLEU its version. Knows
files; how a score is counted is the business of `evaluation`, which keeps it here.
"""

from __future__ import annotations

import contextlib
import json
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from workbench.runs import Run


def file_of(run: Run, test: str) -> Path:
    """Where the score of a test set is kept."""
    return run.results / "known_scores" / f"{test}.json"


def known(run: Run, test: str) -> float | None:
    """Corpus BLEU as `evaluation` counts it by default; None where it was not counted since the texts changed."""
    try:
        found = json.loads(file_of(run, test).read_bytes())
        return float(found["bleu"]) if found["of"] == _stamp(run, test) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # not there, or damaged: counted again
        return None


def keep(run: Run, test: str, bleu: float) -> None:
    """Keep a score; nothing is kept where runs are for reading only."""
    if known(run, test) == bleu:
        return
    path = file_of(run, test)
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(json.dumps({"of": _stamp(run, test), "bleu": bleu}), encoding="ascii")
        os.replace(part, path)


def _stamp(run: Run, test: str) -> dict[str, list[int] | str]:
    """Size in bytes and time in nanoseconds of each text that BLEU is counted from, and who counts."""
    folder = run.results / "translations" / test
    texts = [folder / "hypotheses.txt", *sorted(folder.glob("references*.txt"))]
    found = {path.name: path.stat() for path in texts}
    return {"sacrebleu": _counted_by(), **{name: [of.st_size, of.st_mtime_ns] for name, of in found.items()}}


@cache
def _counted_by() -> str:
    return version("sacrebleu")
