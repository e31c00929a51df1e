"""Figures of scores over whole test sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt

from workbench.evaluation import scoring
from workbench.figures.options import FigureOptions, Names
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.figures.signatures import with_signatures
from workbench.store.runs import short_names
from workbench.views.scores.verdict import METHOD_TEXTS

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


class CountingOptions(FigureOptions):
    """Options of scoring."""

    preset: str = Field("default", description="Case, tokenizer or a paper's way; workbench evaluate --preset list")
    reference: NonNegativeInt = Field(0, description="Score against this reference alone, from 1; 0: all together")

    @property
    def counting(self) -> scoring.Counting:
        """Settings for `workbench.evaluation.scoring`."""
        return scoring.Counting(self.preset, self.reference)


class ScoresOptions(CountingOptions):
    """Options of the figure `scores`."""

    metrics: Names = Field(("bleu", "chrf"), description="A panel each: bleu, chrf, ter, …")


class PairOptions(CountingOptions):
    """Options of the figure `score-pairs`."""

    metric: str = Field("bleu", description="bleu, chrf, ter, …")
    method: Literal["bootstrap", "randomization", "sign", "bootstrap-sacrebleu"] = Field(
        "bootstrap", description="The test of each pair"
    )


class ScoresByTestOptions(CountingOptions):
    """Options of the figure `scores-by-test`."""

    metric: str = Field("bleu", description="bleu, chrf, ter, …")
    tests: Names = Field((), description="Test sets, a panel each; the one of --test unless told")

    def test_sets(self, test: str) -> tuple[str, ...]:
        return self.tests or (test,)


@figure("scores", scope="test_set", options=ScoresOptions)
def _scores(request: Request, options: ScoresOptions) -> Figure:
    """Corpus scores of each run with 95 % intervals, one panel for each metric."""
    from workbench.views.scores.plots import score_dots

    table = scoring.score_table(request.runs, request.test, options.metrics, counting=options.counting)
    table = table.assign(metric=table["metric"].replace(scoring.METRIC_NAMES))
    figure = score_dots(
        named(table, request), baseline=short_names(request.runs).get(request.base), styles=styles(request)
    )
    return with_signatures(figure, dict(zip(table["metric"], table["signature"], strict=True)))


@figure("scores-by-test", scope="test_set", options=ScoresByTestOptions)
def _scores_by_test(request: Request, options: ScoresByTestOptions) -> Figure:
    """Scores of several test sets under one metric, one panel for each, without runs that have not translated it."""
    from analyses.scores import LOWER_IS_BETTER
    from workbench.views.scores import test_sets
    from workbench.views.scores.plots import score_dots

    metric, requested = options.metric, options.test_sets(request.test)
    table = test_sets.score_table(request.runs, requested, [metric], counting=options.counting)
    name, tests = scoring.METRIC_NAMES[metric], list(dict.fromkeys(table["test"]))
    figure = score_dots(
        named(table.assign(metric=table["test"]), request),
        baseline=short_names(request.runs).get(request.base),
        styles=styles(request),
        lower_is_better=tests if name in LOWER_IS_BETTER else (),
    )
    description = f"{name} with 95% intervals, a panel a test set, sorted by {tests[0]}; the axes do not start at zero."
    rule = f" The dotted rule is {short_names(request.runs)[request.base]}."
    figure = replace(figure, name="scores-by-test", title=f"{name} by test set", caption=description + rule)
    signatures = zip(table["test"], table["signature"], strict=True)
    return with_signatures(figure, {f"{name}, {test}": signature for test, signature in signatures})


@figure("score-pairs", scope="test_set", options=PairOptions)
def _score_pairs(request: Request, options: PairOptions) -> Figure:
    """Differences of every pair of runs under one metric, with stars for significance."""
    from workbench.views.scores.plots import score_pairs

    table = scoring.pair_table(request.runs, request.test, options.metric, options.method, options.counting)
    names, metric = short_names(request.runs), scoring.METRIC_NAMES[options.metric]
    table = table.assign(system=table["system"].map(names), other=table["other"].map(names), metric=metric)
    count = f"the {len(table)} pairs, which is stricter than over those with the baseline alone"
    count = count if len(table) > 1 else "the one pair"
    caption = (
        f"{metric} of the row's system minus that of the column's; blue: the row's is better. ∗: p < 0.05, ∗∗: "
        f"p < 0.01, ∗∗∗: p < 0.001 after Holm's correction over {count}. {METHOD_TEXTS[options.method]}."
    )
    return with_signatures(score_pairs(table, caption), {metric: table["signature"].iloc[0]})
