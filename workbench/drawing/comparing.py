"""Drawings that compare runs over a whole test set: training curves, scores, buckets, adequacy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench import scoring
from workbench.drawing.options import choice
from workbench.figures.registry import drawing
from workbench.figures.request import Request, named, styles
from workbench.runs import RunError, short_names, training_table

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures.grammar import Figure


@drawing("training-curves")
def _training_curves(request: Request) -> Figure:
    from workbench.figures.training import training_curves

    table = training_table(request.runs)
    if table.empty:
        raise RunError(f"{', '.join(run.name for run in request.runs)}: nothing was logged yet; train the run first")
    return training_curves(named(table, request, "run"), styles=styles(request), **request.options)


@drawing("scores", options=("metrics", "preset", "reference"))
def _scores(request: Request) -> Figure:
    from workbench.figures.scores import score_dots

    metrics = request.options.get("metrics", ("bleu", "chrf"))
    metrics = metrics.split(",") if isinstance(metrics, str) else metrics
    counting = scoring.Counting(request.options.get("preset", "default"), request.options.get("reference", 0))
    table = scoring.score_table(request.runs, request.test, metrics, counting=counting)
    table = table.assign(metric=table["metric"].replace(scoring.METRIC_NAMES))
    figure = score_dots(
        named(table, request), baseline=short_names(request.runs).get(request.base), styles=styles(request)
    )
    return _signed(figure, dict(zip(table["metric"], table["signature"], strict=True)))


@drawing("scores-by-test", options=("metric", "tests", "preset", "reference"))
def _scores_by_test(request: Request) -> Figure:
    """A panel a test set, of one metric; runs that have not translated one are not in its panel."""
    from workbench import across_tests
    from workbench.figures.scores import score_dots
    from workbench.scoring import LOWER_IS_BETTER

    metric = request.options.get("metric", "bleu")
    counting = scoring.Counting(request.options.get("preset", "default"), request.options.get("reference", 0))
    table = across_tests.score_table(request.runs, request.tests, [metric], counting=counting)
    name, tests = scoring.METRIC_NAMES[metric], list(dict.fromkeys(table["test"]))
    figure = score_dots(
        named(table.assign(metric=table["test"]), request),
        baseline=short_names(request.runs).get(request.base),
        styles=styles(request),
        lower_is_better=tests if name in LOWER_IS_BETTER else (),
    )
    said = f"{name} with 95 % intervals, a panel a test set, sorted by {tests[0]}; the axes do not start at zero."
    rule = f" The dotted rule is {short_names(request.runs)[request.base]}."
    figure = replace(figure, name="scores-by-test", title=f"{name} by test set", caption=said + rule)
    signed = zip(table["test"], table["signature"], strict=True)
    return _signed(figure, {f"{name}, {test}": signature for test, signature in signed})


def _signed(figure: Figure, signatures: dict[str, str]) -> Figure:
    """The figure with the signatures of its metrics, for the metadata of its files."""
    return replace(figure, provenance={**figure.provenance, "signatures": signatures})


def _signed_as(figure: Figure, request: Request) -> Figure:
    """The same for the one metric of a request; lengths are no metric and have none."""
    metric = request.options.get("metric", "bleu")
    if metric not in scoring.METRIC_NAMES:
        return figure
    run = request.runs[0]
    found = scoring.statistics(run, run.translations(request.test), metric)
    return _signed(figure, {scoring.METRIC_NAMES[metric]: found.signature})


def _lengths(request: Request) -> tuple[pd.DataFrame, pd.DataFrame | None, str, str]:
    from workbench import buckets

    options = dict(request.options)
    metric = options.pop("metric", "bleu")
    grouping = buckets.Grouping(**options)
    scores, differences, said = buckets.tables(request.runs, request.test, grouping, metric, request.base)
    return scores, differences, buckets.METRIC_NAMES.get(metric, metric), said


@drawing("length-scores")
def _length_scores(request: Request) -> Figure:
    from workbench.figures.lengths import length_scores

    table, _, metric, length = _lengths(request)
    figure = length_scores(named(table.dropna(subset=["score"]), request), metric, length, styles=styles(request))
    return _signed_as(figure, request)


@drawing("length-differences")
def _length_differences(request: Request) -> Figure:
    from workbench.figures.lengths import length_differences

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
    return _signed_as(figure, request)


@drawing("output-lengths")
def _output_lengths(request: Request) -> Figure:
    from workbench.figures.lengths import output_lengths

    table, _, _, length = _lengths(request)
    return output_lengths(named(table.dropna(subset=["score"]), request), length, styles=styles(request))


@drawing("adequacy", options=("aligner", "towards"))
def _adequacy(request: Request) -> Figure:
    from workbench.adequacy import TOWARDS, adequacy_table, aligner_of, covered_by
    from workbench.figures.scores import score_dots

    aligner, origin = aligner_of(request.runs, request.test, request.options.get("aligner"))
    towards = choice(request, "towards", TOWARDS)
    covering = covered_by(len(request.runs[0].translations(request.test).test_set.all_references), towards)
    table = adequacy_table(request.runs, request.test, aligner, towards=towards).rename(columns={"measure": "metric"})
    figure = score_dots(
        named(table, request), baseline=short_names(request.runs).get(request.base), styles=styles(request)
    )
    said = (
        f"CDR: of the source words that {covering} covers, the share that the translation covers too, of all words and "
        "(macro) as a mean over sentences. Under and over are proxies, no human counts: the rest, and source words "
        f"that the same word translates twice or more, and more often than in {covering}. All links are of one frozen "
        f"aligner ({aligner.digest}, {origin})."
    )
    return replace(figure, name="adequacy", title="Adequacy", caption=f"{figure.caption} {said}")
