"""Several metrics over the values of one option, one below the other: Figures 4 and 5 of Yang 2019, without two axes.

Options as of the drawing `ablation`, and `metrics` (with commas between) instead of `metric`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.figures.registry import DRAWINGS, drawing
from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure

METRICS = "bleu,chrf"


@drawing("ablation-stacked", without_runs=True, options=("option", "experiment", "metrics"))
def _stacked(request: Request) -> Figure:
    """Options besides: metrics."""
    asked = request.options.get("metrics", METRICS)
    metrics = asked.split(",") if isinstance(asked, str) else list(asked)
    if not metrics:
        raise RunError("name at least one metric, such as --option metrics=bleu,chrf")
    shared = {name: value for name, value in request.options.items() if name != "metrics"}
    each = [DRAWINGS["ablation"](replace(request, options={**shared, "metric": metric})) for metric in metrics]
    return replace(
        each[0],
        name="ablation-stacked",
        title="One option at several values, several metrics",
        panels=tuple(panel for figure in each for panel in figure.panels),  # ours, then what is printed, if anything
        caption=" ".join(figure.caption for figure in each),
        summary=" ".join(figure.summary for figure in each),
        width="column",
        columns=1,
        shared_x=True,
    )
