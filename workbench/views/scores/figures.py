"""Figures of scores over whole test sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.evaluation import scoring
from workbench.figures.registry import drawing
from workbench.figures.request import Request, named, styles
from workbench.figures.signatures import with_signatures
from workbench.store.runs import short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@drawing("scores", options=("metrics", "preset", "reference"))
def _scores(request: Request) -> Figure:
    from workbench.views.scores.plots import score_dots

    metrics = request.options.get("metrics", ("bleu", "chrf"))
    metrics = metrics.split(",") if isinstance(metrics, str) else metrics
    counting = scoring.Counting(request.options.get("preset", "default"), request.options.get("reference", 0))
    table = scoring.score_table(request.runs, request.test, metrics, counting=counting)
    table = table.assign(metric=table["metric"].replace(scoring.METRIC_NAMES))
    figure = score_dots(
        named(table, request), baseline=short_names(request.runs).get(request.base), styles=styles(request)
    )
    return with_signatures(figure, dict(zip(table["metric"], table["signature"], strict=True)))


@drawing("scores-by-test", options=("metric", "tests", "preset", "reference"))
def _scores_by_test(request: Request) -> Figure:
    """A panel a test set, of one metric; runs that have not translated one are not in its panel."""
    from analyses.scores import LOWER_IS_BETTER
    from workbench.views.scores import test_sets
    from workbench.views.scores.plots import score_dots

    metric = request.options.get("metric", "bleu")
    counting = scoring.Counting(request.options.get("preset", "default"), request.options.get("reference", 0))
    table = test_sets.score_table(request.runs, request.tests, [metric], counting=counting)
    name, tests = scoring.METRIC_NAMES[metric], list(dict.fromkeys(table["test"]))
    figure = score_dots(
        named(table.assign(metric=table["test"]), request),
        baseline=short_names(request.runs).get(request.base),
        styles=styles(request),
        lower_is_better=tests if name in LOWER_IS_BETTER else (),
    )
    said = f"{name} with 95% intervals, a panel a test set, sorted by {tests[0]}; the axes do not start at zero."
    rule = f" The dotted rule is {short_names(request.runs)[request.base]}."
    figure = replace(figure, name="scores-by-test", title=f"{name} by test set", caption=said + rule)
    signed = zip(table["test"], table["signature"], strict=True)
    return with_signatures(figure, {f"{name}, {test}": signature for test, signature in signed})
