"""From runs to figures: one function a figure, the same for `workbench figure` and for the pages.

A request names runs, test set and sentence; a drawing gathers the tables (evaluation, analyses) and hands them to its
figure family. Pages compute nothing: they call `draw`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench import evaluation
from workbench.runs import Run, RunError, training_table

if TYPE_CHECKING:
    import pandas as pd

    from core_models.traces import TraceStore
    from workbench.figures.grammar import Figure, SeriesStyle

FUTURE = "future_cost.log_prob"
GATE = "future_cost.gate"


@dataclass(frozen=True)
class Request:
    """What is to be drawn. `sentence` counts from 0; `options` are the drawing's own."""

    runs: tuple[Run, ...]
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The run that others are compared with: the one named, else the first."""
        return self.baseline or self.runs[0].name


Drawing = Callable[[Request], "Figure"]
DRAWINGS: dict[str, Drawing] = {}
OF_A_SENTENCE: set[str] = set()  # the drawings that show one sentence, not a whole test set


def drawing(name: str, of_a_sentence: bool = False) -> Callable[[Drawing], Drawing]:
    def add(function: Drawing) -> Drawing:
        DRAWINGS[name] = function
        if of_a_sentence:
            OF_A_SENTENCE.add(name)
        return function

    return add


def draw(name: str, request: Request) -> Figure:
    """The figure of a name; raises RunError where there is none, or a run lacks what it needs."""
    if name not in DRAWINGS:
        from core_models.config import nearest

        raise RunError(f"no figure is called {name!r}; {nearest(name, list(DRAWINGS))}")
    if not request.runs:
        raise RunError("no run is chosen; name at least one")
    try:
        figure = DRAWINGS[name](request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError) or not request.options:
            raise
        raise RunError(f"{name} cannot be drawn with {request.options}: {error}") from error
    return replace(figure, provenance={**figure.provenance, **_provenance(name, request)})


def _provenance(name: str, request: Request) -> dict[str, str]:
    """What travels in the metadata of an exported file, so that it can be drawn again."""
    said = {
        "runs": ", ".join(run.name for run in request.runs),
        "test": request.test,
        "options": json.dumps(request.options, sort_keys=True, ensure_ascii=False),
    }
    return {**said, "sentence": str(request.sentence)} if name in OF_A_SENTENCE else said


def looks(runs: Sequence[Run]) -> dict[str, SeriesStyle]:
    """The style of each run, by name: the same in every figure of the same runs, whatever it draws first."""
    from workbench.figures import theme

    names = short_names(runs)
    chosen = theme.styles(list(names.values()))
    return {name: chosen[short] for name, short in names.items()}


def _styles(request: Request) -> dict[str, SeriesStyle]:
    names = short_names(request.runs)
    return {names[name]: style for name, style in looks(request.runs).items()}


def short_names(runs: Sequence[Run]) -> dict[str, str]:
    """Run names for legends: the last part of the path where that tells them apart."""
    last = [run.name.rsplit("/", 1)[-1] for run in runs]
    return {run.name: short if last.count(short) == 1 else run.name for run, short in zip(runs, last, strict=True)}


def _named(table: pd.DataFrame, request: Request, column: str = "system") -> pd.DataFrame:
    return table.assign(**{column: table[column].map(short_names(request.runs))})


@drawing("training-curves")
def _training_curves(request: Request) -> Figure:
    from workbench.figures.training import training_curves

    table = training_table(request.runs)
    if table.empty:
        raise RunError(f"{', '.join(run.name for run in request.runs)}: nothing was logged yet; train the run first")
    return training_curves(_named(table, request, "run"), styles=_styles(request), **request.options)


@drawing("scores")
def _scores(request: Request) -> Figure:
    from workbench.figures.scores import score_dots

    metrics = request.options.get("metrics", ("bleu", "chrf"))
    metrics = metrics.split(",") if isinstance(metrics, str) else metrics
    counting = evaluation.Counting(request.options.get("preset", "default"), request.options.get("reference", 0))
    table = evaluation.score_table(request.runs, request.test, metrics, counting=counting)
    table = table.assign(metric=table["metric"].replace(evaluation.METRIC_NAMES))
    return score_dots(
        _named(table, request), baseline=short_names(request.runs).get(request.base), styles=_styles(request)
    )


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
    return length_scores(_named(table.dropna(subset=["score"]), request), metric, length, styles=_styles(request))


@drawing("length-differences")
def _length_differences(request: Request) -> Figure:
    from workbench.figures.lengths import length_differences

    _, table, metric, length = _lengths(request)
    if table is None:
        raise RunError("a difference needs two runs; choose another one beside the baseline")
    return length_differences(
        _named(table.dropna(subset=["delta"]), request),
        metric,
        short_names(request.runs)[request.base],
        length,
        styles=_styles(request),
    )


@drawing("output-lengths")
def _output_lengths(request: Request) -> Figure:
    from workbench.figures.lengths import output_lengths

    table, _, _, length = _lengths(request)
    return output_lengths(_named(table.dropna(subset=["score"]), request), length, styles=_styles(request))


@drawing("adequacy")
def _adequacy(request: Request) -> Figure:
    from workbench.adequacy import adequacy_table, aligner_of
    from workbench.figures.scores import score_dots

    aligner, origin = aligner_of(request.runs, request.test, request.options.get("aligner"))
    table = adequacy_table(request.runs, request.test, aligner).rename(columns={"measure": "metric"})
    figure = score_dots(
        _named(table, request), baseline=short_names(request.runs).get(request.base), styles=_styles(request)
    )
    said = (
        "CDR: of the source words that the reference covers, the share that the translation covers too. Under and over "
        "are proxies, no human counts: the rest, and source words that are translated twice by the same word. All "
        f"links are of one frozen aligner ({aligner.digest}, {origin})."
    )
    return replace(figure, name="adequacy", title="Adequacy", caption=f"{figure.caption} {said}")


def _tree(run: Run, request: Request) -> dict[str, Any]:
    return run.translations(request.test).tree(request.sentence)


@drawing("beam-tree", of_a_sentence=True)
def _beam_tree(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam import beam_tree

    return beam_tree(beam.tree(_tree(request.runs[0], request)), **request.options)


def _pair(request: Request) -> tuple[Run, Run]:
    if len(request.runs) < 2:
        raise RunError("two runs are needed to compare their beams; choose another one")
    return request.runs[0], request.runs[1]


@drawing("beam-trees", of_a_sentence=True)
def _beam_trees(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam import beam_trees_side_by_side

    first, second = _pair(request)
    names = short_names((first, second))
    return beam_trees_side_by_side(
        beam.tree(_tree(first, request)),
        beam.tree(_tree(second, request)),
        (names[first.name], names[second.name]),
        **request.options,
    )


@drawing("beam-diff", of_a_sentence=True)
def _beam_diff(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam import beam_diff

    first, second = _pair(request)
    names = short_names((first, second))
    found = beam.diff(_tree(first, request), _tree(second, request))
    return beam_diff(
        found.nodes,
        (names[first.name], names[second.name]),
        divergence_step=found.divergence_step,
        styles=_styles(request),
        **request.options,
    )


def _future_traces(run: Run, test: str) -> TraceStore:
    """The traces of a run, which must hold the future cost and what it is held against."""
    if "future_cost" not in run.mechanisms:
        raise RunError(f"{run.name} estimates no future cost; choose a run of future-cost-1 or future-cost-2")
    traces = run.traces(test)
    missing = [name for name in (FUTURE, "log_prob") if name not in traces.names]
    if missing:
        raise RunError(
            f"{run.name}: {missing[0]} of {test!r} is not traced; do it: workbench trace {run.reference} --test {test}"
        )
    return traces


def future_cost_table(run: Run, test: str, sentence: int) -> pd.DataFrame:
    """Realised and estimated log P and the gate at each step of one traced sentence."""
    from analyses.future_cost import overlay

    traces = _future_traces(run, test)
    translations = run.translations(test)
    if sentence not in traces:
        raise RunError(
            f"{run.name}: sentence {sentence} of {test!r} is not traced (of {len(translations)}, from 0); trace all: "
            f"workbench trace {run.reference} --test {test}"
        )
    trace = traces[sentence]
    tokens = translations.details[sentence]["tokens"]
    realised = trace["log_prob"].values
    if len(tokens) != len(realised):
        raise RunError(f"{run.name}: the trace of sentence {sentence} is of another translation; trace {test} again")
    gate = trace[GATE].values if GATE in trace else None
    return overlay(tokens, realised, trace[FUTURE].values, gate)


@drawing("future-cost-overlay", of_a_sentence=True)
def _overlay(request: Request) -> Figure:
    from workbench.figures.future_cost import overlay

    run = request.runs[0]
    return overlay(
        future_cost_table(run, request.test, request.sentence), f"Future cost along a translation: {run.name}"
    )


def future_cost_pairs(run: Run, test: str) -> tuple[list[float], list[float]]:
    """(estimated, realised) log P of every traced word of a test set."""
    traces = _future_traces(run, test)
    estimated: list[float] = []
    realised: list[float] = []
    for sentence in traces:
        estimated += traces.array(FUTURE, sentence).values.tolist()
        realised += traces.array("log_prob", sentence).values.tolist()
    return estimated, realised


@drawing("future-cost-calibration")
def _calibration(request: Request) -> Figure:
    import pandas as pd

    from analyses.future_cost import calibration
    from workbench.figures.future_cost import calibration as drawn

    able = [run for run in request.runs if "future_cost" in run.mechanisms]
    if not able:
        raise RunError("none of the runs estimates a future cost; choose a run of future-cost-1 or future-cost-2")
    tables = [
        calibration(*future_cost_pairs(run, request.test)).assign(system=short_names(request.runs)[run.name])
        for run in able
    ]
    return drawn(pd.concat(tables, ignore_index=True), styles=_styles(request))


from workbench import attribution_drawings as attribution_drawings  # noqa: E402
from workbench import beam_size_drawing as beam_size_drawing  # noqa: E402
from workbench import inside_drawings as inside_drawings  # noqa: E402  (it adds its drawings to DRAWINGS)
from workbench import word_drawings as word_drawings  # noqa: E402
