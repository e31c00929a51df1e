"""Figures of what was logged in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.registry import drawing
from workbench.figures.request import Request, named, styles
from workbench.store.runs import RunError, training_table

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@drawing("training-curves")
def _training_curves(request: Request) -> Figure:
    from workbench.views.training_curves.plots import training_curves

    table = training_table(request.runs)
    if table.empty:
        raise RunError(f"{', '.join(run.name for run in request.runs)}: nothing was logged yet; train the run first")
    return training_curves(named(table, request, "run"), styles=styles(request), **request.options)
