"""Figure of several metrics over the values of one option, below each other (Yang 2019, Figures 4 and 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from workbench.figures.options import Names
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import RunError
from workbench.views.ablation.figures import AblationOptions, SweepOptions, ablation_figure, result_files

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


class AblationStackedOptions(SweepOptions):
    """Options of the figure `ablation-stacked`."""

    metrics: Names = Field(("bleu", "chrf"), description="One below the other: bleu, chrf, ter, …")


@figure("ablation-stacked", scope="test_set", options=AblationStackedOptions, needs_runs=False, depends_on=result_files)
def _stacked(request: Request, options: AblationStackedOptions) -> Figure:
    """Several metrics over the values of one option, one below the other."""
    if not options.metrics:
        raise RunError("name at least one metric, such as --option metrics=bleu,chrf")
    shared = options.model_dump(exclude={"metrics"})
    figures = [ablation_figure(request, AblationOptions(**shared, metric=metric)) for metric in options.metrics]
    return replace(
        figures[0],
        name="ablation-stacked",
        title="One option at several values, several metrics",
        panels=tuple(panel for figure in figures for panel in figure.panels),  # of each metric: ours, then reported
        caption=" ".join(figure.caption for figure in figures),
        summary=" ".join(figure.summary for figure in figures),
        width="column",
        columns=1,
        shared_x=True,
    )
