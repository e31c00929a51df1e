"""Figure of training curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from workbench.figures.options import FigureOptions, Names
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.store.runs import RunError
from workbench.store.training_logs import training_table

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


class TrainingCurvesOptions(FigureOptions):
    """Options of the figure `training-curves`."""

    names: Names = Field((), description="What was logged, a panel each; all unless told")
    x: Literal["step", "epoch", "tokens", "seconds"] = Field("step", description="The horizontal axis")
    smoothing: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, description="Weight of the past in an exponential mean")
    log_y: Names = Field((), description="The names whose axis is logarithmic")


@figure("training-curves", scope="runs", options=TrainingCurvesOptions)
def _training_curves(request: Request, options: TrainingCurvesOptions) -> Figure:
    """Logged quantities of training, one panel for each quantity and one line for each run."""
    from workbench.views.training_curves.plots import training_curves

    table = training_table(request.runs)
    if table.empty:
        raise RunError(f"{', '.join(run.name for run in request.runs)}: nothing was logged yet; train the run first")
    return training_curves(named(table, request, "run"), styles=styles(request), **options.model_dump())
