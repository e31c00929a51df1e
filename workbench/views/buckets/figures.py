"""Figures of scores by bucket: sentence length and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.registry import drawing
from workbench.figures.request import Request, named, styles
from workbench.figures.signatures import with_metric_signature
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


def _lengths(request: Request) -> tuple[pd.DataFrame, pd.DataFrame | None, str, str]:
    from workbench.evaluation import bucketed_scores

    options = dict(request.options)
    metric = options.pop("metric", "bleu")
    grouping = bucketed_scores.Grouping(**options)
    scores, differences, said = bucketed_scores.tables(request.runs, request.test, grouping, metric, request.base)
    return scores, differences, bucketed_scores.METRIC_NAMES.get(metric, metric), said


@drawing("length-scores")
def _length_scores(request: Request) -> Figure:
    from workbench.views.buckets.plots import length_scores

    table, _, metric, length = _lengths(request)
    figure = length_scores(named(table.dropna(subset=["score"]), request), metric, length, styles=styles(request))
    return with_metric_signature(figure, request)


@drawing("length-differences")
def _length_differences(request: Request) -> Figure:
    from workbench.views.buckets.plots import length_differences

    _, table, metric, length = _lengths(request)
    if table is None:
        raise RunError("a difference needs two runs; choose another one beside the baseline")
    figure = length_differences(
        named(table.dropna(subset=["delta"]), request),
        metric,
        short_names(request.runs)[request.base],
        length,
        styles=styles(request),
    )
    return with_metric_signature(figure, request)


@drawing("output-lengths")
def _output_lengths(request: Request) -> Figure:
    from workbench.views.buckets.plots import output_lengths

    table, _, _, length = _lengths(request)
    return output_lengths(named(table.dropna(subset=["score"]), request), length, styles=styles(request))
