"""Figures of the future cost from traces: along one translation, and calibration over a test set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import RunError, short_names
from workbench.views.future_cost.measure import future_cost_pairs, future_cost_table

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@figure("future-cost-overlay", scope="sentence")
def _overlay(request: Request, options: FigureOptions) -> Figure:
    """Estimated future cost, log P and gate along one translation of the first run."""
    from workbench.views.future_cost.plots import overlay

    run = request.runs[0]
    table = future_cost_table(run, request.test, request.sentence)
    return of_the_first(overlay(table, f"Future cost along a translation: {run.name}"), request)


@figure("future-cost-calibration", scope="test_set")
def _calibration(request: Request, options: FigureOptions) -> Figure:
    """Estimated against realised future cost over a test set."""
    import pandas as pd

    from analyses.future_cost import calibration
    from workbench.views.future_cost.plots import calibration as drawn

    compatible_runs = [run for run in request.runs if "future_cost" in run.mechanisms]
    if not compatible_runs:
        raise RunError("none of the runs estimates a future cost; choose a run of future-cost-1 or future-cost-2")
    tables = [
        calibration(*future_cost_pairs(run, request.test)).assign(system=short_names(request.runs)[run.name])
        for run in compatible_runs
    ]
    return drawn(pd.concat(tables, ignore_index=True), styles=styles(request))
