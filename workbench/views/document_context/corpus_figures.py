"""Figures of the routing of the context over a test set, with intervals over its sentences (Yang 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.evaluation.document_context import routing_context
from workbench.figures.options import CorpusOptions, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


def measures_table(request: Request, options: CorpusOptions) -> pd.DataFrame:
    """`analyses.context_routing.measures` of the runs that route context, with a first column `system`."""
    import pandas as pd

    from analyses.context_routing import measures
    from workbench.views.document_context.measure_routing import measured

    names, count = short_names(request.runs), number(options.sentences)
    tables = [
        measures(measured(run, request.test, count)).assign(system=names[run.name])
        for run in routing_context(request.runs)
    ]
    table = pd.concat(tables, ignore_index=True)
    return table[["system", *(column for column in table if column != "system")]]


def _scope_text(table: pd.DataFrame, request: Request) -> str:
    counted = ", ".join(map(str, sorted(set(table.loc[table["distance"] == 0, "n"]))))
    return f"{counted} sentences of {request.test} that have a context; 95% bootstrap intervals over sentences"


@figure("context-corpus", scope="test_set", options=CorpusOptions)
def _corpus(request: Request, options: CorpusOptions) -> Figure:
    """Measures of how the context is routed over a test set, by iteration."""
    from analyses.context_routing import MEASURES
    from workbench.views.document_context.plots import context_curves

    table = measures_table(request, options)
    return context_curves(
        table[table["distance"] == 0],
        MEASURES,
        {"negative": 0.0},
        "Among how many capsules a word is spread as if evenly (exp of the mean entropy of c); among how many all "
        "words of a context together are; what the fullest capsule gets of them (1: collapsed); how many weights are "
        f"below zero. Means over {_scope_text(table, request)}. Iterations count from 0.",
        styles(request),
        "context-corpus",
    )


@figure("context-distances", scope="test_set", options=CorpusOptions)
def _distances(request: Request, options: CorpusOptions) -> Figure:
    """Weight of context words by their distance to the sentence."""
    from analyses.context_routing import DISTANCE_MEASURES
    from workbench.views.document_context.plots import context_distances

    table = measures_table(request, options)
    return context_distances(
        table[table["distance"] > 0],
        DISTANCE_MEASURES,
        "Words of a context sentence, by how far before the sentence it stands: the largest coupling c of a word, a "
        "mean over words (at first the even share, one over the number of capsules; 1: each word goes to one "
        "capsule); the mean correlation p; the mean size of the weights c + p, how much a word counts, be it added to "
        f"a capsule or taken off it. Means over {_scope_text(table, request)}. Iterations count from 0.",
    )
