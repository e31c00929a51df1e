"""Figure of PAST and FUTURE against the gold links, for runs and for rules without a model, on the same cells.

References of the controlled corpus are force-decoded. Runs without PAST and FUTURE groups give a rule: their cumulated
attention. Their coverage, if any, is compared too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.gold_alignments import Truth, truths
from workbench.evaluation.scoring import check_alike
from workbench.figures.options import CorpusOptions, MeanOrNumber, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.corpus_figures import sentences_of
from workbench.views.past_future.measure import Sentence, coverage_form, guided
from workbench.views.past_future.probe import LESSONS, read_by_probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import pandas as pd

    from analyses.past_future_gold import Areas, Present
    from workbench.plotting.grammar import Figure

POSITION = "rule: position"
ATTENTION = "rule: attention of "
COVERAGE = "coverage of "
PROBE = "probe: states of "


class TruthOptions(CorpusOptions):
    """Options of the figure `past-future-truth`."""

    layer: MeanOrNumber = Field("mean", description="The layer, from 1, of the attention that is cumulated")
    present: Literal["out", "future"] = Field(
        "out", description="Words that are just being written: left out, or taken for FUTURE"
    )
    probe: PositiveInt | bool = Field(
        False, description="Ask a probe that is taught the truth too; a number: of so many sentences"
    )


@dataclass(frozen=True, eq=False)
class Truths:
    """Comparison of runs and rules with the gold links, on the same words at the same steps."""

    areas: Areas
    bins: pd.DataFrame
    redundant: pd.DataFrame
    systems: tuple[str, ...]
    rules: tuple[str, ...]
    sentences: int
    left_out: int


@dataclass(frozen=True, eq=False)
class _Forced:
    """References force-decoded by the runs, for sentences in which the runs and the truth count the same words.

    `rows`: these rows of the test set; `cells`: for each row the cells (step, word) that the truth labels.
    """

    separating: list[Run]
    plain: list[Run]
    sentences: dict[Run, dict[int, Sentence]]
    known: list[Truth]
    present: Present
    rows: list[int]
    cells: dict[int, pd.DataFrame]
    left_out: int

    def at_cells(self, score: Callable[[int], np.ndarray]) -> np.ndarray:
        """A score [T, I] of each sentence by its row, at the cells of all."""
        import numpy as np

        return np.concatenate([score(row)[cells["step"], cells["word"]] for row, cells in self.cells.items()])


def against_truth(request: Request, options: TruthOptions) -> Truths:
    """Compare runs and rules with the gold links; raises RunError if there are none."""
    import pandas as pd

    from analyses import past_future_gold as truth

    forced, names = _forced(request, options), short_names(request.runs)
    run_scores, attention_scores = _run_scores(forced, names), _attention_scores(options, forced, names)
    scores = {
        **run_scores,
        **attention_scores,
        **_probe_scores(request, options, forced, names),
        POSITION: _by_position(forced),
    }
    table = pd.concat([cells.assign(sentence=row) for row, cells in forced.cells.items()], ignore_index=True)
    bins = [
        truth.calibration(table, values).assign(system=name)
        for name, values in {**run_scores, **attention_scores}.items()
    ]
    redundant = _redundancies(forced, names)
    return Truths(
        truth.areas(table, scores),
        pd.concat(bins, ignore_index=True),
        pd.concat(redundant, ignore_index=True) if redundant else pd.DataFrame(),
        tuple(run_scores),
        tuple(name for name in scores if name.startswith("rule: ")),
        len(forced.rows),
        forced.left_out,
    )


def _forced(request: Request, options: TruthOptions) -> _Forced:
    """Force-decode the references with the runs that attend to the source or separate PAST and FUTURE."""
    from analyses import past_future_gold as truth

    present: Present = options.present
    with_models = [run for run in request.runs if not run.outside]
    if not with_models:
        request.runs[0].require_model()
    check_alike({run.name: run.translations(request.test) for run in with_models})  # the truth is of one version
    known, separating = truths(with_models[0], request.test), guided(with_models)
    sentences = {
        run: {sentence.row: sentence for sentence in sentences_of(request, options, run, "reference")}
        for run in with_models
    }
    plain = [run for run in with_models if run not in separating and _has_array(sentences[run], "attention")]
    sentences = {run: sentences[run] for run in (*separating, *plain)}
    if not sentences:
        raise RunError("none of the runs attends to the source or separates PAST and FUTURE; choose another")
    shared = sorted(set.intersection(*(set(by_row) for by_row in sentences.values())))
    rows = [row for row in shared if all(known[row].fits(*by_row[row].words) for by_row in sentences.values())]
    if not rows:
        raise RunError("the runs' pieces join to other words than the truth counts, in every sentence")
    cells = {
        row: truth.cells(known[row].links, known[row].source_words, known[row].target_words, options.present)
        for row in rows
    }
    return _Forced(separating, plain, sentences, known, present, rows, cells, len(shared) - len(rows))


def _has_array(sentences: Mapping[int, Sentence], array: str) -> bool:
    """Return True if some sentence has the array, e.g. attention."""
    return any(len(getattr(sentence, array)) for sentence in sentences.values())


def _run_scores(forced: _Forced, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Score of each cell by the runs' own groups: the share of PAST, or the coverage of the word."""
    from analyses.past_future import past_share

    def share(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: past_share(forced.sentences[run][row].mass))

    def coverage(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: _covered_before_step(run, forced.sentences[run][row]))

    covering = [run for run in forced.plain if _has_array(forced.sentences[run], "coverage")]
    return {
        **{names[run.name]: share(run) for run in forced.separating},
        **{f"{COVERAGE}{names[run.name]}": coverage(run) for run in covering},
    }


def _attention_scores(options: TruthOptions, forced: _Forced, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Scores of the rule "cumulated attention", for every run without groups."""
    from analyses.past_future_gold import cumulative_attention

    def attention(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: cumulative_attention(_layer(options.layer, run, forced.sentences[run][row])))

    return {f"{ATTENTION}{names[run.name]}": attention(run) for run in forced.plain}


def _probe_scores(
    request: Request, options: TruthOptions, forced: _Forced, names: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Scores of a probe of the hidden states, for every run; empty unless `probe` is set."""
    lessons, rows = _lessons(options.probe), forced.rows

    def read(run: Run) -> np.ndarray:
        probabilities = dict(zip(rows, read_by_probe(run, request.test, rows, forced.present, lessons), strict=True))
        return forced.at_cells(probabilities.__getitem__)

    return {f"{PROBE}{names[run.name]}": read(run) for run in forced.sentences} if lessons else {}


def _by_position(forced: _Forced) -> np.ndarray:
    """Scores of the rule "relative positions"."""
    from analyses.past_future_gold import position_scores

    return forced.at_cells(lambda row: position_scores(forced.known[row].target_words, forced.known[row].source_words))


def _redundancies(forced: _Forced, names: Mapping[str, str]) -> list[pd.DataFrame]:
    """REDUNDANT mass of words with and without a counterpart, for every run with such a group."""
    from analyses.past_future import REDUNDANT
    from analyses.past_future_gold import redundancy

    tables = []
    for run in forced.separating:
        masses = [forced.sentences[run][row].mass for row in forced.rows]
        if masses[0].shape[-1] > REDUNDANT:
            truth = [forced.known[row] for row in forced.rows]
            table = redundancy(
                masses, [sentence.without for sentence in truth], [sentence.source_words for sentence in truth]
            )
            tables.append(table.assign(system=names[run.name]))
    return tables


def _covered_before_step(run: Run, sentence: Sentence) -> np.ndarray:
    """Coverage of each source word before each step [T, I]; "subtractive" coverage, which counts down, from one."""
    from analyses.content_states import before_each_step

    covered = sentence.coverage
    return before_each_step(1 - covered if coverage_form(run) == "subtractive" else covered)


def _layer(requested: int | str, run: Run, sentence: Sentence) -> np.ndarray:
    """Attention [T, I] of one layer, or the mean over all layers."""
    layer, layers = number(requested), len(sentence.attention)
    if layer is None:
        return sentence.attention.mean(0)
    if layer > layers:
        raise RunError(f"layer {layer} of {run.name}: write mean, or a number from 1 to {layers}")
    return sentence.attention[layer - 1]


def _lessons(requested: bool | int) -> int:
    """Number of sentences that the probe is trained on; 0 for no probe."""
    return LESSONS * requested if isinstance(requested, bool) else requested


@figure("past-future-truth", scope="test_set", options=TruthOptions)
def _truth(request: Request, options: TruthOptions) -> Figure:
    """PAST and FUTURE of each run compared with gold links, and rules without a model."""
    from analyses.past_future_gold import WORDS, calibration_error
    from workbench.views.past_future.corpus_plots import against_truth as drawn

    comparison = against_truth(request, options)
    run_styles = styles(request)
    names = comparison.areas.table["system"].unique()
    by_name = {name: run_styles[_run_name(name)] for name in names if _run_name(name) in run_styles}
    errors = [f"{name} {calibration_error(rows):.3f}" for name, rows in comparison.bins.groupby("system", sort=False)]
    differences = "; ".join(
        _margin_text(comparison, system, rule) for system in comparison.systems for rule in comparison.rules
    )
    margins = f"AUC minus that of the rule, paired: {differences}. " if differences else ""
    redundant = "".join(
        f" REDUNDANT as a sign of having no counterpart: AUC {table['auc'].iloc[0]:.3f} ({name})."
        for name, table in (comparison.redundant.groupby("system", sort=False) if len(comparison.redundant) else ())
    )
    left_out = f", {comparison.left_out} left out whose pieces join to other words" if comparison.left_out else ""
    probed = (
        ""
        if not any(name.startswith(PROBE) for name in comparison.areas.table["system"])
        else (" Probes: a small network, taught the truth, reads a system's frozen states and annotations.")
    )
    rule = "position scores t/T − i/I" + (
        "; attention of a plain system: what a word was attended to before the step"
        if len(comparison.rules) > 1
        else ""
    )
    covered = (
        "Coverage: what stood for the word before the step. " if any(map(_is_coverage, comparison.systems)) else ""
    )
    present = "left out" if options.present == "out" else "taken for FUTURE"
    caption = (
        f"References of {comparison.sentences} sentences{left_out}, true links. Of a source word at a step: PAST / "
        "(PAST + FUTURE), against whether all its counterparts are written or all are to come; words that are just "
        f"being written are {present}. Rules without a model: {rule}.{probed} 95% bootstrap intervals over sentences. "
        f"{covered}{margins}Calibration error: {', '.join(errors)}.{redundant}"
    )
    return drawn(comparison.areas.table, comparison.bins, comparison.redundant, WORDS, by_name, caption)


def _run_name(name: str) -> str:
    """Name of the run behind a rule, coverage or probe, which gives the style."""
    return name.removeprefix(ATTENTION).removeprefix(PROBE).removeprefix(COVERAGE)


def _is_coverage(name: str) -> bool:
    return name.startswith(COVERAGE)


def _margin_text(comparison: Truths, system: str, rule: str) -> str:
    """Differences in AUC of a system and a rule, for all words and for moved words."""
    from analyses.past_future_gold import WORDS

    differences = []
    for words, title in WORDS.items():
        delta, low, high = comparison.areas.difference(system, rule, words)
        differences.append(f"{title} {delta:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−"))
    return f"{system} over {rule.removeprefix('rule: ')} {', '.join(differences)}"
