"""Comparison of the recorded searches of a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import Run

if TYPE_CHECKING:
    from analyses.beam import BeamDiff


def longest_search(request: Request) -> int:
    """Last step of the searches of a sentence."""
    return max(max(run.translations(request.test).tree(request.sentence)["step"]) for run in request.runs)


def beam_difference(request: Request) -> BeamDiff:
    """Merge two searches of a sentence and collect the candidates of only one of them."""
    from analyses import beam

    first, second = (run.translations(request.test).tree(request.sentence) for run in request.runs[:2])
    return beam.diff(first, second)


def has_trees(run: Run, test: str) -> bool:
    """Return True if the searches of the test set were recorded."""
    return test in run.tests() and run.translations(test).has_trees
