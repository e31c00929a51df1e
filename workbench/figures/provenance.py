"""Provenance of drawn figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core_models.resources import commit
from workbench.figures.registry import spec_of
from workbench.figures.request import Request
from workbench.figures.spec import portable, recipe_of
from workbench.store.provenance import digests
from workbench.store.runs import Run

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


def provenance(name: str, request: Request, figure: Figure) -> dict[str, Any]:
    """The provenance of a drawn figure: recipe, digests of its runs, seed of resampling, commit."""
    origin: dict[str, Any] = {
        "recipe": portable(recipe_of(name, request)).model_dump(mode="json"),
        "digests": {run.name: digests_of(run, name, request) for run in request.runs},
    }
    if _resampled(figure):
        from analyses.significance import DEFAULT_SEED

        origin["resampling_seed"] = DEFAULT_SEED
    return {**origin, **({"commit": commit()} if commit() else {})}


def digests_of(run: Run, name: str, request: Request) -> dict[str, str]:
    """`digests` of a run for all test sets that a figure shows."""
    tests = spec_of(name).test_sets(request)
    further = {test: digests(run, test).get("translations") for test in tests if test != request.test}
    translation_digests = {f"translations of {test}": digest for test, digest in further.items() if digest}
    return {**digests(run, request.test), **translation_digests}


def _resampled(figure: Figure) -> bool:
    """Return True if it shows resampled intervals."""
    return any(getattr(mark, "low", None) for panel in figure.panels for mark in panel.marks)
