"""The signatures of metrics, for the metadata of a figure's files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.evaluation import scoring
from workbench.figures.request import Request

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


def with_signatures(figure: Figure, signatures: dict[str, str]) -> Figure:
    """The figure with the signatures of its metrics, for the metadata of its files."""
    return replace(figure, provenance={**figure.provenance, "signatures": signatures})


def with_metric_signature(figure: Figure, request: Request, metric: str) -> Figure:
    """The figure with the signature of its one metric; lengths have no signature."""
    if metric not in scoring.METRIC_NAMES:
        return figure
    run = request.runs[0]
    segment_statistics = scoring.statistics(run, run.translations(request.test), metric)
    return with_signatures(figure, {scoring.METRIC_NAMES[metric]: segment_statistics.signature})
