"""Estimated future costs beside realised ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, short_names
from workbench.views.future_cost.figures import future_cost_pairs

if TYPE_CHECKING:
    import pandas as pd


def estimates(run: Run) -> bool:
    """Does it estimate a future cost?"""
    return "future_cost" in run.mechanisms


def is_traced(run: Run, test: str) -> bool:
    """Has the run traces of a test set?"""
    try:
        run.traces(test)
    except RunError:
        return False
    return True


def agreement_table(request: Request) -> pd.DataFrame:
    """How estimated and realised log P agree: system, pearson, spearman, mean_absolute_error, bias (nats), n words."""
    import pandas as pd

    from analyses.future_cost import summary

    names = short_names(request.runs)
    return pd.DataFrame(
        [{"system": names[run.name], **asdict(summary(*future_cost_pairs(run, request.test)))} for run in request.runs]
    )
