"""Drawings of PAST and FUTURE layers: their states along one sentence and over a test set, and maps of coverage.

Runs without such layers are left out; a map of coverage shows the attention that a run
without coverage has added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from workbench.evaluation.gold_alignments import has_truth, truths
from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import ForcedOptions, MeanOrNumber, number, up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.corpus_figures import TargetOptions, target_of
from workbench.views.past_future.measure import COVERAGE, CROSS, coverage_form, coverage_units
from workbench.views.past_future_layers import measure as states_of

if TYPE_CHECKING:
    import numpy as np

    from workbench.plotting.grammar import Figure

MOST_SYSTEMS = 3  # beside each other


class CoverageMapOptions(ForcedOptions):
    """Options of the figure `coverage-map`."""

    pieces: bool = Field(False, description="Pieces, not joined to words")
    unit: MeanOrNumber = Field("mean", description="The unit of neural coverage, from 1")


def _layered(request: Request) -> list[Run]:
    """The runs that can be drawn, the first few; raises RunError where none can."""
    found = states_of.layered(request.runs)
    if not found:
        raise RunError(
            f"{request.runs[0].name} has no PAST or FUTURE layer; choose a run of pfrnn-loss, prnn or frnn-gru-i"
        )
    return found[:MOST_SYSTEMS]


def _looked(request: Request, options: ForcedOptions, run: Run) -> SentenceTrace:
    return trace_sentence(run, request.test, request.sentence, *options.forced)


def _left_out(request: Request) -> str:
    more = states_of.layered(request.runs)[MOST_SYSTEMS:]
    names = short_names(request.runs)
    return f" Not drawn, being more than {MOST_SYSTEMS}: {', '.join(names[run.name] for run in more)}." if more else ""


_MEANING = (
    "Lengths of the states after each step and of their change; the change, signed so that it should be what is "
    "translated, against the context as the layer reads it and, where there is a loss, against the word; what the "
    "heads of the losses say of the right word beside the system itself; PAST + FUTURE against the summary of the "
    "source that FUTURE began from, the distance in lengths of the summary."
)


@figure("content-states", scope="sentence", options=ForcedOptions)
def _content_states(request: Request, options: ForcedOptions) -> Figure:
    """What the states of PAST and FUTURE layers do at each step of a translation."""
    import pandas as pd

    from analyses.content_states import MEASURES
    from workbench.views.past_future_layers.plots import content_states

    names = short_names(request.runs)
    tables = []
    for run in _layered(request):
        looked = _looked(request, options, run)
        for name, values in states_of.steps_of(looked.trace).items():
            side, _, measure = name.rpartition(".")
            rows = {"step": range(len(values)), "token": list(looked.target), "value": values}
            tables.append(pd.DataFrame(rows).assign(system=names[run.name], side=side, measure=measure))
    table = _ordered(pd.concat(tables, ignore_index=True), list(MEASURES))
    said = options.spoken
    caption = f"{said[0].upper()}{said[1:]} of sentence {request.sentence}, forced, by pieces. {_MEANING}"
    return content_states(table, MEASURES, caption + _left_out(request))


def _ordered(table, measures: list[str]):
    """Rows in the order of the measures; those of the system alone, where no layer has the measure, go."""
    of_layers = set(table.loc[table["side"] != "system", "measure"])
    kept = table[table["measure"].isin(of_layers)]
    return kept.sort_values("measure", key=lambda column: column.map(measures.index), kind="stable", ignore_index=True)


@figure("content-course", scope="test_set", options=TargetOptions)
def _content_course(request: Request, options: TargetOptions) -> Figure:
    """The states of PAST and FUTURE layers over the relative position, means over a test set."""
    import pandas as pd

    from analyses.content_states import MEASURES, course, steadiness
    from workbench.views.past_future_layers.plots import content_course

    names = short_names(request.runs)
    tables, said, steady = [], [], []
    for run in _layered(request):
        target = target_of(request, options, run)
        found = states_of.measured(run, request.test, target, number(options.sentences))
        name = names[run.name]
        tables.append(course(found).assign(system=name))
        whose = "its own translations" if target == "own" else "references"
        said.append(f"{name}: {len(found)} sentences, {whose}")
        if "whole.distance" in found[0]:
            means = steadiness(found).mean()
            steady.append(
                f"{name}: distance {means['distance']:.2f}, spread along a sentence {means['distance_spread']:.2f}; "
                f"cosine {means['cosine']:.2f}, spread {means['cosine_spread']:.2f}"
            )
    whole = f" PAST + FUTURE against the source's summary, means over sentences: {'; '.join(steady)}." if steady else ""
    caption = (
        f"Means over the relative position in tenths, 95% bootstrap intervals over sentences. {_MEANING}{whole} "
        f"{'; '.join(said)}.{_left_out(request)}"
    )
    return content_course(_ordered(pd.concat(tables, ignore_index=True), list(MEASURES)), MEASURES, caption)


@figure("coverage-map", scope="sentence", options=CoverageMapOptions)
def _coverage_map(request: Request, options: CoverageMapOptions) -> Figure:
    """How far each source word is covered after each step."""
    import pandas as pd

    from analyses.attention import END, joined
    from workbench.plotting.axes import matrix_table
    from workbench.views.past_future_layers.plots import MOST_COVERED, coverage_maps

    names, pieces = short_names(request.runs), options.pieces
    cells, marks, said = [], [], []
    neural = {names[run.name]: coverage_units(run) for run in request.runs if coverage_units(run)}
    if options.unit != "mean" and not neural:
        raise RunError("unit: none of the runs has neural coverage; leave it out")
    unit = up_to(options, "unit", min(neural.values(), default=1))
    for run in request.runs:
        looked = _looked(request, options, run)
        if CROSS not in looked.trace:
            continue
        values, how = _covered(run, looked, pieces, unit)
        sources, targets = list(looked.source), list(looked.target)
        if not pieces:
            sources, targets = joined(sources), joined(targets)
        table = matrix_table(values.T, targets, sources, x="step", y="word")
        cells.append(table.assign(system=names[run.name]))
        said.append(f"{names[run.name]}: {how}")
        ends = len(sources) - (sources[-1] == END), len(targets) - (targets[-1] == END)
        if options.target == "reference" and not pieces and has_truth(run, request.test):
            truth = truths(run, request.test)[request.sentence]
            if truth.fits(*ends):
                marks += [(names[run.name], j, i, "sure") for i, j in sorted(truth.links)]
    if not cells:
        raise RunError("none of the runs attends to the source; choose another")
    counterparts = " Squares: true counterparts." if marks else ""
    caption = (
        f"How far each source word is covered after each step, shaded up to {MOST_COVERED:g}; {'; '.join(said)}."
        f"{' States of units are from −1 to 1 and count nothing; white is 0.' * bool(neural)}{counterparts}"
    )
    links = pd.DataFrame(marks, columns=["system", "step", "word", "kind"])
    return coverage_maps(pd.concat(cells, ignore_index=True), links, caption, neural)


def _covered(run: Run, looked: SentenceTrace, pieces: bool, unit: int | None) -> tuple[np.ndarray, str]:
    """Coverage [T, I] after each step, and what it is in words; what is taken from one is shown as what was taken, of
    neural coverage [T, I, units] a unit (None: their mean)."""
    import numpy as np

    from analyses.attention import average
    from analyses.content_states import covered_words

    form = coverage_form(run)
    if form == "neural":
        states = looked.array(COVERAGE)
        values = states.mean(-1) if unit is None else states[..., unit - 1]
        how = f"neural coverage, {f'mean of {states.shape[-1]} units' if unit is None else f'unit {unit}'}"
    elif form is not None:
        values, how = looked.array(COVERAGE), f"{form} coverage"
        values = 1 - values if form == "subtractive" else values
    else:
        values, how = np.cumsum(average(looked.array(CROSS)), axis=0), "attention added up"
    return (values if pieces else covered_words(values, looked.target, looked.source)), how
