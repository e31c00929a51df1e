"""What the recorded searches of a sentence have in common, and what not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import Run

if TYPE_CHECKING:
    from analyses.beam import BeamDiff


def longest_search(request: Request) -> int:
    """The last step of the searches of a sentence."""
    return max(max(run.translations(request.test).tree(request.sentence)["step"]) for run in request.runs)


def beam_difference(request: Request) -> BeamDiff:
    """Two searches of a sentence merged, with what only one of them reached."""
    from analyses import beam

    first, second = (run.translations(request.test).tree(request.sentence) for run in request.runs[:2])
    return beam.diff(first, second)


def has_trees(run: Run, test: str) -> bool:
    """Were the searches of a test set recorded?"""
    return test in run.tests() and run.translations(test).has_trees
