"""Figures of PAST and FUTURE layers: their states along one sentence and over a test set, and maps of coverage.

Runs without such layers are left out. For runs without coverage the map shows their cumulated attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workbench.evaluation.gold_alignments import has_truth, truths
from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import ForcedOptions, MeanOrNumber, number, number_up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.corpus_figures import TargetOptions, target_of
from workbench.views.past_future.measure import COVERAGE, CROSS, coverage_form, coverage_units
from workbench.views.past_future_layers import measure as states_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

MOST_SYSTEMS = 3  # columns of panels
Part = Literal["all", "lengths", "rest"]
PART: Any = Field("all", description="Which measures: the lengths of the states, the rest, or all")


class ContentStatesOptions(ForcedOptions):
    """Options of the figure `content-states`."""

    part: Part = PART


class ContentCourseOptions(TargetOptions):
    """Options of the figure `content-course`."""

    part: Part = PART


class CoverageMapOptions(ForcedOptions):
    """Options of the figure `coverage-map`."""

    pieces: bool = Field(False, description="Pieces, not joined to words")
    unit: MeanOrNumber = Field("mean", description="The unit of neural coverage, from 1")


def _drawn_runs(request: Request) -> list[Run]:
    """First runs with PAST or FUTURE layers, at most `MOST_SYSTEMS`; raises RunError if there are none."""
    runs = states_of.layered(request.runs)
    if not runs:
        raise RunError(
            f"{request.runs[0].name} has no PAST or FUTURE layer; choose a run of pfrnn-loss, prnn or frnn-gru-i"
        )
    return runs[:MOST_SYSTEMS]


def _trace(request: Request, options: ForcedOptions, run: Run) -> SentenceTrace:
    return trace_sentence(run, request.test, request.sentence, *options.forced_target)


def _left_out(request: Request) -> str:
    undrawn = states_of.layered(request.runs)[MOST_SYSTEMS:]
    names = short_names(request.runs)
    return (
        f" Not drawn, being more than {MOST_SYSTEMS}: {', '.join(names[run.name] for run in undrawn)}."
        if undrawn
        else ""
    )


_LENGTHS = (
    "Lengths of the states after each step. The layers are meant to keep what is translated and what is not: PAST to "
    "grow towards the whole source, FUTURE to shrink (Zheng 2018)."
)
_MEANING = (
    "Lengths of the states after each step and of their change; the change, signed so that it should be what is "
    "translated, against the context as the layer reads it and, where there is a loss, against the word; what the "
    "heads of the losses say of the right word beside the system itself; PAST + FUTURE against the summary of the "
    "source that FUTURE began from, the distance in lengths of the summary."
)


def _in_part(table: pd.DataFrame, part: Part) -> pd.DataFrame:
    """The rows of the requested measures."""
    return table if part == "all" else table[(table["measure"] == "norm") == (part == "lengths")]


@figure("content-states", scope="sentence", options=ContentStatesOptions)
def _content_states(request: Request, options: ContentStatesOptions) -> Figure:
    """Measures of the states of PAST and FUTURE layers at each step of a translation."""
    import pandas as pd

    from analyses.content_states import MEASURES
    from workbench.views.past_future_layers.plots import content_states

    names = short_names(request.runs)
    tables = []
    for run in _drawn_runs(request):
        forced = _trace(request, options, run)
        for name, values in states_of.steps_of(forced.trace).items():
            side, _, measure = name.rpartition(".")
            rows = {"step": range(len(values)), "token": list(forced.target), "value": values}
            tables.append(pd.DataFrame(rows).assign(system=names[run.name], side=side, measure=measure))
    table = _in_part(_sorted_by_measure(pd.concat(tables, ignore_index=True), list(MEASURES)), options.part)
    translation, meaning = options.target_text, _LENGTHS if options.part == "lengths" else _MEANING
    caption = f"{translation[0].upper()}{translation[1:]} of sentence {request.sentence}, forced, by pieces. {meaning}"
    return content_states(table, MEASURES, caption + _left_out(request))


def _sorted_by_measure(table, measures: list[str]):
    """Sort rows by measure and drop measures of the system that no layer has."""
    layer_measures = set(table.loc[table["side"] != "system", "measure"])
    rows = table[table["measure"].isin(layer_measures)]
    return rows.sort_values("measure", key=lambda column: column.map(measures.index), kind="stable", ignore_index=True)


@figure("content-course", scope="test_set", options=ContentCourseOptions)
def _content_course(request: Request, options: ContentCourseOptions) -> Figure:
    """The states of PAST and FUTURE layers over the relative position, means over a test set."""
    import pandas as pd

    from analyses.content_states import MEASURES, course, steadiness
    from workbench.views.past_future_layers.plots import content_course

    names = short_names(request.runs)
    tables, descriptions, steady = [], [], []
    for run in _drawn_runs(request):
        target = target_of(request, options, run)
        sentences = states_of.measured(run, request.test, target, number(options.sentences))
        name = names[run.name]
        tables.append(course(sentences).assign(system=name))
        translations = "its own translations" if target == "own" else "references"
        descriptions.append(f"{name}: {len(sentences)} sentences, {translations}")
        if "whole.distance" in sentences[0]:
            means = steadiness(sentences).mean()
            steady.append(
                f"{name}: distance {means['distance']:.2f}, spread along a sentence {means['distance_spread']:.2f}; "
                f"cosine {means['cosine']:.2f}, spread {means['cosine_spread']:.2f}"
            )
    whole_text = (
        f" PAST + FUTURE against the source's summary, means over sentences: {'; '.join(steady)}." if steady else ""
    )
    meaning = _LENGTHS if options.part == "lengths" else f"{_MEANING}{whole_text}"
    caption = (
        f"Means over the relative position in tenths, 95% bootstrap intervals over sentences. {meaning} "
        f"{'; '.join(descriptions)}.{_left_out(request)}"
    )
    table = _in_part(_sorted_by_measure(pd.concat(tables, ignore_index=True), list(MEASURES)), options.part)
    return content_course(table, MEASURES, caption)


@figure("coverage-map", scope="sentence", options=CoverageMapOptions)
def _coverage_map(request: Request, options: CoverageMapOptions) -> Figure:
    """Coverage of each source word after each step."""
    import pandas as pd

    from analyses.attention import END, joined
    from workbench.plotting.axes import matrix_table
    from workbench.views.past_future_layers.plots import MOST_COVERED, coverage_maps

    names, pieces = short_names(request.runs), options.pieces
    cells, marks, descriptions = [], [], []
    neural = {names[run.name]: coverage_units(run) for run in request.runs if coverage_units(run)}
    if options.unit != "mean" and not neural:
        raise RunError("unit: none of the runs has neural coverage; leave it out")
    unit = number_up_to(options, "unit", min(neural.values(), default=1))
    for run in request.runs:
        forced = _trace(request, options, run)
        if CROSS not in forced.trace:
            continue
        values, description = _covered(run, forced, pieces, unit)
        sources, targets = list(forced.source), list(forced.target)
        if not pieces:
            sources, targets = joined(sources), joined(targets)
        table = matrix_table(values.T, targets, sources, x="step", y="word")
        cells.append(table.assign(system=names[run.name]))
        descriptions.append(f"{names[run.name]}: {description}")
        lengths = len(sources) - (sources[-1] == END), len(targets) - (targets[-1] == END)
        if options.target == "reference" and not pieces and has_truth(run, request.test):
            truth = truths(run, request.test)[request.sentence]
            if truth.fits(*lengths):
                marks += [(names[run.name], j, i, "sure") for i, j in sorted(truth.links)]
    if not cells:
        raise RunError("none of the runs attends to the source; choose another")
    counterparts = " Squares: true counterparts." if marks else ""
    caption = (
        f"How far each source word is covered after each step, shaded up to {MOST_COVERED:g}; "
        f"{'; '.join(descriptions)}."
        f"{' States of units are from −1 to 1 and count nothing; white is 0.' * bool(neural)}{counterparts}"
    )
    links = pd.DataFrame(marks, columns=["system", "step", "word", "kind"])
    return coverage_maps(pd.concat(cells, ignore_index=True), links, caption, neural)


def _covered(run: Run, forced: SentenceTrace, pieces: bool, unit: int | None) -> tuple[np.ndarray, str]:
    """Coverage [T, I] after each step, and its description.

    Subtractive coverage counts down from one and is inverted; of neural coverage [T, I, units] one unit is taken (None:
    the mean of all).
    """
    import numpy as np

    from analyses.attention import average
    from analyses.content_states import covered_words

    form = coverage_form(run)
    if form == "neural":
        states = forced.array(COVERAGE)
        values = states.mean(-1) if unit is None else states[..., unit - 1]
        description = f"neural coverage, {f'mean of {states.shape[-1]} units' if unit is None else f'unit {unit}'}"
    elif form is not None:
        values, description = forced.array(COVERAGE), f"{form} coverage"
        values = 1 - values if form == "subtractive" else values
    else:
        values, description = np.cumsum(average(forced.array(CROSS)), axis=0), "attention added up"
    return (values if pieces else covered_words(values, forced.target, forced.source)), description
