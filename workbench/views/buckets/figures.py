"""Figures of scores and output lengths by bucket, e.g. of sentence length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.figures.signatures import with_metric_signature
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


class BucketOptions(FigureOptions):
    """Options of all figures by bucket: `bucketed_scores.Grouping`, and the metric."""

    metric: str = Field("bleu", description="bleu, chrf, ter, …, length-ratio or output-length")
    measure: Literal["source", "reference", "output", "source-frequency", "reference-frequency", "label"] = Field(
        "source", description="What buckets are of: lengths in words, frequencies of the rarest word, labels"
    )
    scheme: str = Field(
        "",
        description="tens (steps of ten to 50), short (steps of five to 25), width:10, quantiles:6, frequency (0, 1 to "
        "4, …); by default tens, for frequencies frequency",
    )
    counts: Literal["test", "training"] = Field("test", description="The text that frequencies are counted in")
    labels: str = Field("", description="A file with a label a line or a table of labels, or document")
    column: str = Field("", description="The column of a table of labels; the first unless told")


def _lengths(request: Request, options: BucketOptions) -> tuple[pd.DataFrame, pd.DataFrame | None, str, str]:
    from workbench.evaluation import bucketed_scores

    metric = options.metric
    grouping = bucketed_scores.Grouping(**options.model_dump(exclude={"metric"}))
    scores, differences, length_label = bucketed_scores.tables(
        request.runs, request.test, grouping, metric, request.base
    )
    return scores, differences, bucketed_scores.METRIC_NAMES.get(metric, metric), length_label


@figure("length-scores", scope="test_set", options=BucketOptions)
def _length_scores(request: Request, options: BucketOptions) -> Figure:
    """Scores of each run by bucket of the test set's sentences."""
    from workbench.views.buckets.plots import length_scores

    table, _, metric, length = _lengths(request, options)
    figure = length_scores(named(table.dropna(subset=["score"]), request), metric, length, styles=styles(request))
    return with_metric_signature(figure, request, options.metric)


@figure("length-differences", scope="test_set", options=BucketOptions)
def _length_differences(request: Request, options: BucketOptions) -> Figure:
    """Differences of each run to the baseline by bucket, with bands."""
    from workbench.views.buckets.plots import length_differences

    _, table, metric, length = _lengths(request, options)
    if table is None:
        raise RunError("a difference needs two runs; choose another one beside the baseline")
    figure = length_differences(
        named(table.dropna(subset=["delta"]), request),
        metric,
        short_names(request.runs)[request.base],
        length,
        styles=styles(request),
    )
    return with_metric_signature(figure, request, options.metric)


@figure("output-lengths", scope="test_set", options=BucketOptions)
def _output_lengths(request: Request, options: BucketOptions) -> Figure:
    """Mean output length of each run by bucket, compared with the reference."""
    from workbench.views.buckets.plots import output_lengths

    table, _, _, length = _lengths(request, options)
    return output_lengths(named(table.dropna(subset=["score"]), request), length, styles=styles(request))
