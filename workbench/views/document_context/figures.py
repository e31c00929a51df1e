"""Figures of the context capsules of one force-decoded sentence (Yang 2019).

Runs that route no context are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt

from workbench.evaluation.document_context import CAPSULES, routing_context
from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import MAX_CELLS, ForcedOptions, Limit, MeanOrNumber, number, number_up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

SHOWN = {"all": "c, p and c + p", "c": "c", "p": "p", "sum": "c + p"}
CORRELATIONS = {"own": "As it routes", "both": "True and literal"}
CURVES = ("effective", "used", "fullest_share", "negative", "query_cosine")


class ContextRoutingOptions(ForcedOptions):
    """Options of the figure `context-routing`."""

    iteration: NonNegativeInt | Literal["all"] = Field("all", description="From 0, as Figures 6 and 7 of Yang 2019")
    show: Literal["all", "c", "p", "sum"] = Field("all", description="Which maps: c, p, c + p (sum), or all of them")
    correlation: Literal["own", "both"] = Field(
        "own", description="p as it routes, or the true correlation beside Equation 7 as published"
    )
    raw: bool = Field(False, description="p without its tanh")


class CapsulesReadOptions(ForcedOptions):
    """Options of the figure `context-capsules-read`."""

    layer: MeanOrNumber = Field("mean", description="The layer, from 1")
    head: MeanOrNumber = Field("mean", description="The head, from 1")
    limit: Limit = Field(
        "auto",
        description="The difference to an even share that has the last color; auto: the largest, outliers left out",
    )


def passes(request: Request, options: ForcedOptions, runs: list[Run]) -> Iterator[tuple[str, SentenceTrace]]:
    """Force-decode the sentence with each run that has context for it; raises RunError if none has."""
    names = short_names(request.runs)
    count = 0
    for run in runs:
        trace = trace_sentence(run, request.test, request.sentence, *options.forced_target)
        if trace.before is not None and trace.before.count:
            count += 1
            yield names[run.name], trace
    if not count:
        raise RunError(
            f"sentence {request.sentence} of {request.test!r} begins its document, or the test set has no document "
            "ids: there is no context to be seen; choose another sentence"
        )


def array(trace: SentenceTrace, name: str) -> np.ndarray:
    """Trace array of the capsules [iterations, n, m]."""
    return trace.array(f"{CAPSULES}.{name}")


def _iterations(options: ContextRoutingOptions, count: int) -> list[int]:
    """Iterations to draw, counted from 0."""
    requested = number_up_to(options, "iteration", count - 1)
    return list(range(count)) if requested is None else [requested]


def _rows(options: ContextRoutingOptions, trace: SentenceTrace) -> dict[str, np.ndarray]:
    """Values of the requested rows of maps, by their title."""
    import numpy as np

    from workbench.views.document_context.plots import CORRELATION, COUPLING, LITERAL, TRUE, WEIGHT

    raw, as_routed = options.raw, {CORRELATION: "correlations"}
    correlations = as_routed if options.correlation == "own" else {TRUE: "pearson", LITERAL: "eq7"}
    by_option = {
        "c": {COUPLING: array(trace, "couplings")},
        "p": {row: np.arctanh(array(trace, name)) if raw else array(trace, name) for row, name in correlations.items()},
        "sum": {WEIGHT: array(trace, "weights")},
    }
    return {
        row: values for key, rows in by_option.items() if options.show in ("all", key) for row, values in rows.items()
    }


def _cells(name: str, trace: SentenceTrace, row: str, values: np.ndarray, iteration: int) -> pd.DataFrame:
    """Table of one map, one row per cell."""
    from workbench.plotting.axes import matrix_table
    from workbench.views.document_context.plots import COUPLING

    distances = trace.array("context.distance")
    table = matrix_table(values[iteration].T, x_tokens=list(trace.context), x="word", y="capsule")
    scale = values.shape[-1] if row == COUPLING else 1
    return table.assign(
        system=name, row=row, iteration=iteration, capsule=table["capsule"] + 1, shown=table["value"] * scale,
        distance=distances[table["word"]],
    )  # fmt: skip


@figure("context-routing", scope="sentence", options=ContextRoutingOptions)
def _routing(request: Request, options: ContextRoutingOptions) -> Figure:
    """Routing of context words to capsules, by iteration."""
    import pandas as pd

    from workbench.views.document_context.plots import context_routing

    tables = []
    for name, trace in passes(request, options, routing_context(request.runs)):
        rows = _rows(options, trace)
        count = len(next(iter(rows.values())))
        tables += [
            _cells(name, trace, row, values, iteration)
            for iteration in _iterations(options, count)
            for row, values in rows.items()
        ]
    cells = pd.concat(tables, ignore_index=True)
    if len(cells) > MAX_CELLS:
        raise RunError(f"{len(cells)} cells are too many for maps; choose one iteration, or fewer runs")
    scale = "p without its tanh" if options.raw else "p = tanh of the correlation"
    return context_routing(
        cells,
        "Pieces of the sentences before, the farthest first, each sentence with its </s>. c: how much of a word goes "
        f"to a capsule, shaded by its ratio to an even share; {scale} with the capsule's query; a word counts by c + "
        f"p (Algorithm 1, line 20). Iterations count from 0, as in Figures 6 and 7 of Yang 2019; along "
        f"{options.target_text}.",
    )


def curve_table(name: str, trace: SentenceTrace) -> pd.DataFrame:
    """Measures of one sentence by iteration; columns system, measure, iteration, value."""
    import pandas as pd

    from analyses import context_routing
    from analyses.routing import effective_capsules

    couplings, correlations = array(trace, "couplings"), array(trace, "correlations")
    measures = {
        "effective": effective_capsules(couplings),
        "used": context_routing.used_capsules(couplings),
        "fullest_share": context_routing.fullest_share(couplings),
        "negative": context_routing.negative_share(couplings, correlations),
        "query_cosine": array(trace, "query_cosine").mean(-1),
    }
    rows = [
        {"system": name, "measure": measure, "iteration": iteration, "value": float(value)}
        for measure, values in measures.items()
        for iteration, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


@figure("context-curves", scope="sentence", options=ForcedOptions)
def _curves(request: Request, options: ForcedOptions) -> Figure:
    """Measures of how the context of a sentence is routed, by iteration."""
    import numpy as np
    import pandas as pd

    from workbench.views.document_context.plots import context_curves

    tables, capsules = [], set()
    for name, trace in passes(request, options, routing_context(request.runs)):
        tables.append(curve_table(name, trace))
        capsules.add(array(trace, "couplings").shape[-1])
    ceilings = {name: float(max(capsules)) for name in ("effective", "used")}
    return context_curves(
        pd.concat(tables, ignore_index=True).assign(low=np.nan, high=np.nan),
        CURVES,
        {**ceilings, "negative": 0.0},
        "Among how many capsules a word is spread as if evenly (exp of the mean entropy of c); among how many all "
        "words together are, and what the fullest capsule gets of them (1: all went to one, it collapsed); how many of "
        "the weights c + p are below zero; cosine of each query with the first one, a mean over capsules, after the "
        f"iteration (E8). Dotted: as many as there are; along {options.target_text}.",
        styles(request),
    )


@figure("context-capsules-read", scope="sentence", options=CapsulesReadOptions)
def _read(request: Request, options: CapsulesReadOptions) -> Figure:
    """Attention of source positions to the capsules of the context."""
    import pandas as pd

    from analyses import attention
    from workbench.plotting.axes import matrix_table
    from workbench.views.document_context.plots import capsules_read

    layer, head = number(options.layer), number(options.head)
    tables = []
    for name, trace in passes(request, options, routing_context(request.runs)):
        weights = attention.average(array(trace, "attention"), layer, head)
        table = matrix_table(weights.T, x_tokens=list(trace.source), x="word", y="capsule", value="share")
        tables.append(table.assign(system=name, capsule=table["capsule"] + 1, even=1 / weights.shape[1]))
    return capsules_read(
        pd.concat(tables, ignore_index=True),
        options.limit,
        "Shares of the capsules in the attention of each source position, a mean over what is not chosen of layers and "
        f"heads, along {options.target_text}; columns sum to one. Colored by the share minus an even one: white reads "
        "all capsules alike, blue is more, red is less.",
    )
