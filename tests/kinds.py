"""What the tests of a file need: `make check` leaves out trained runs, processes, pages of the app and the browser.

A file's kinds are read from its text, before it is imported: to import all of them takes long.
Marks that are written at single tests: `exhaustive` (many cases of a law, of which others are a sample), `slow`,
`timing` and `long`; a whole file is long by its `pytestmark`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

MARKS = {
    "train": "takes a trained run, or trains one",
    "process": "starts processes",
    "app": "opens pages of the app",
    "browser": "drives a browser",
    "long": "takes seconds, and `make check` has no time for it",
    "exhaustive": "one of the many cases of a law of which a sample is tested without it",
    "slow": "takes two seconds or more on a quiet machine, so that `make test-all` alone runs it",
    "timing": "measures time, so that a busy machine may fail it",
}
_RUNS = "demo_runs|graded_runs|copied_runs|context_runs|batched_run"
_RUN = "taught_run|trained_run|routed_run|guided_run|layered_run|offline_run|whole_run|spoiled_run|new_run|pristine"
_SIGNS = {
    "train": rf"\b({_RUNS}|{_RUN}|run_experiment)\b|(?<![.\w])(fit|train)\(",
    "process": r"\bsubprocess\b|\bmultiprocessing\b|ProcessPoolExecutor|\bserving\(|killing import",
    "app": r"AppTest|open_page",
    "browser": r"\bbrowser\b",
    "long": r"(?m)^pytestmark = pytest\.mark\.long$",
}


def sampled(cases: Iterable[object], every: int = 4) -> list[object]:
    """Cases of a law for `parametrize`: the first of every so many is the sample, the others are `exhaustive`."""
    marked = [pytest.param(*case) if isinstance(case, tuple) else pytest.param(case) for case in cases]
    for number, case in enumerate(marked):
        if number % every:
            marked[number] = case._replace(marks=[pytest.mark.exhaustive])
    return marked


def kinds_of(path: Path) -> set[str]:
    """The kinds of a file of tests, by what its text names."""
    text = path.read_text(encoding="utf-8")
    return {kind for kind, signs in _SIGNS.items() if re.search(signs, text)}
