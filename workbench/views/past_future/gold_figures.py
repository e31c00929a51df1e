"""The drawing of PAST and FUTURE against the truth: runs beside rules that need no model, on the same words and steps.

References of the controlled corpus are forced. Runs that separate no PAST and FUTURE serve as a rule, by their
attention; coverage counts as what it says of each word.
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
    """Everything that the truth says of some runs and rules, on the same words at the same steps."""

    areas: Areas
    bins: pd.DataFrame
    redundant: pd.DataFrame
    systems: tuple[str, ...]
    rules: tuple[str, ...]
    sentences: int
    left_out: int


@dataclass(frozen=True, eq=False)
class _Forced:
    """References forced through runs, where these and the truth count the same words: `rows` of the test set, and of
    each the cells (step, word) at which the truth knows an answer."""

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

        return np.concatenate([score(row)[own["step"], own["word"]] for row, own in self.cells.items()])


def against_truth(request: Request, options: TruthOptions) -> Truths:
    """The truth beside runs and rules; raises RunError where it cannot be had."""
    import pandas as pd

    from analyses import past_future_gold as truth

    forced, names = _forced(request, options), short_names(request.runs)
    said, attended = _said_of_words(forced, names), _attended(options, forced, names)
    scores = {**said, **attended, **_probed(request, options, forced, names), POSITION: _by_position(forced)}
    table = pd.concat([own.assign(sentence=row) for row, own in forced.cells.items()], ignore_index=True)
    bins = [truth.calibration(table, own).assign(system=name) for name, own in {**said, **attended}.items()]
    redundant = _redundancies(forced, names)
    return Truths(
        truth.areas(table, scores),
        pd.concat(bins, ignore_index=True),
        pd.concat(redundant, ignore_index=True) if redundant else pd.DataFrame(),
        tuple(said),
        tuple(name for name in scores if name.startswith("rule: ")),
        len(forced.rows),
        forced.left_out,
    )


def _forced(request: Request, options: TruthOptions) -> _Forced:
    """The references of a request, forced through its runs that attend to the source or separate PAST and FUTURE."""
    from analyses import past_future_gold as truth

    present: Present = options.present
    with_models = [run for run in request.runs if not run.outside]
    if not with_models:
        request.runs[0].require_model()
    check_alike({run.name: run.translations(request.test) for run in with_models})  # the truth is of one version
    known, separating = truths(with_models[0], request.test), guided(with_models)
    found = {run: {one.row: one for one in sentences_of(request, options, run, "reference")} for run in with_models}
    plain = [run for run in with_models if run not in separating and _any(found[run], "attention")]
    found = {run: found[run] for run in (*separating, *plain)}
    if not found:
        raise RunError("none of the runs attends to the source or separates PAST and FUTURE; choose another")
    shared = sorted(set.intersection(*(set(own) for own in found.values())))
    rows = [row for row in shared if all(known[row].fits(*own[row].words) for own in found.values())]
    if not rows:
        raise RunError("the runs' pieces join to other words than the truth counts, in every sentence")
    cells = {
        row: truth.cells(known[row].links, known[row].source_words, known[row].target_words, options.present)
        for row in rows
    }
    return _Forced(separating, plain, found, known, present, rows, cells, len(shared) - len(rows))


def _any(sentences: Mapping[int, Sentence], array: str) -> bool:
    """Has some sentence an array, such as attention?"""
    return any(len(getattr(one, array)) for one in sentences.values())


def _said_of_words(forced: _Forced, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """What systems themselves say of each word: the share of PAST, or how far it is covered."""
    from analyses.past_future import past_share

    def share(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: past_share(forced.sentences[run][row].mass))

    def coverage(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: _covered(run, forced.sentences[run][row]))

    covering = [run for run in forced.plain if _any(forced.sentences[run], "coverage")]
    return {
        **{names[run.name]: share(run) for run in forced.separating},
        **{f"{COVERAGE}{names[run.name]}": coverage(run) for run in covering},
    }


def _attended(options: TruthOptions, forced: _Forced, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The rule of cumulated attention, of every plain run."""
    from analyses.past_future_gold import cumulated

    def attention(run: Run) -> np.ndarray:
        return forced.at_cells(lambda row: cumulated(_layer(options.layer, run, forced.sentences[run][row])))

    return {f"{ATTENTION}{names[run.name]}": attention(run) for run in forced.plain}


def _probed(
    request: Request, options: TruthOptions, forced: _Forced, names: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """What a probe reads in the states of every run; nothing where none is asked for."""
    lessons, rows = _lessons(options.probe), forced.rows

    def read(run: Run) -> np.ndarray:
        found = dict(zip(rows, read_by_probe(run, request.test, rows, forced.present, lessons), strict=True))
        return forced.at_cells(found.__getitem__)

    return {f"{PROBE}{names[run.name]}": read(run) for run in forced.sentences} if lessons else {}


def _by_position(forced: _Forced) -> np.ndarray:
    """The rule of relative positions."""
    from analyses.past_future_gold import by_position

    return forced.at_cells(lambda row: by_position(forced.known[row].target_words, forced.known[row].source_words))


def _redundancies(forced: _Forced, names: Mapping[str, str]) -> list[pd.DataFrame]:
    """REDUNDANT mass of words with and without a counterpart, of every run that has such a group."""
    from analyses.past_future import REDUNDANT
    from analyses.past_future_gold import redundancy

    tables = []
    for run in forced.separating:
        masses = [forced.sentences[run][row].mass for row in forced.rows]
        if masses[0].shape[-1] > REDUNDANT:
            truth = [forced.known[row] for row in forced.rows]
            found = redundancy(masses, [one.without for one in truth], [one.source_words for one in truth])
            tables.append(found.assign(system=names[run.name]))
    return tables


def _covered(run: Run, sentence: Sentence) -> np.ndarray:
    """How far each word was covered before each step [T, I]; of coverage that is taken from one, what was taken; of a
    mean, the sum."""
    import numpy as np

    from analyses.content_states import before_each_step

    form, covered = coverage_form(run), sentence.coverage
    if form == "subtractive":
        covered = 1 - covered
    elif form == "mean":
        covered = covered * np.arange(1, len(covered) + 1)[:, None]
    return before_each_step(covered)


def _layer(asked: int | str, run: Run, sentence: Sentence) -> np.ndarray:
    """The attention [T, I] of a layer, or the mean over all."""
    layer, layers = number(asked), len(sentence.attention)
    if layer is None:
        return sentence.attention.mean(0)
    if layer > layers:
        raise RunError(f"layer {layer} of {run.name}: write mean, or a number from 1 to {layers}")
    return sentence.attention[layer - 1]


def _lessons(asked: bool | int) -> int:
    """Of how many sentences the probes are taught; 0 where there are to be none."""
    return LESSONS * asked if isinstance(asked, bool) else asked


@figure("past-future-truth", scope="test_set", options=TruthOptions)
def _truth(request: Request, options: TruthOptions) -> Figure:
    """PAST and FUTURE of each run against true links, beside rules that need no model."""
    from analyses.past_future_gold import WORDS, calibration_error
    from workbench.views.past_future.corpus_plots import against_truth as drawn

    found = against_truth(request, options)
    own = styles(request)
    names = found.areas.table["system"].unique()
    by_name = {name: own[_bare(name)] for name in names if _bare(name) in own}
    errors = [f"{name} {calibration_error(rows):.3f}" for name, rows in found.bins.groupby("system", sort=False)]
    apart = "; ".join(_margin(found, system, rule) for system in found.systems for rule in found.rules)
    margins = f"AUC minus that of the rule, paired: {apart}. " if apart else ""
    redundant = "".join(
        f" REDUNDANT as a sign of having no counterpart: AUC {one['auc'].iloc[0]:.3f} ({name})."
        for name, one in (found.redundant.groupby("system", sort=False) if len(found.redundant) else ())
    )
    left = f", {found.left_out} left out whose pieces join to other words" if found.left_out else ""
    probed = (
        ""
        if not any(name.startswith(PROBE) for name in found.areas.table["system"])
        else (" Probes: a small network, taught the truth, reads a system's frozen states and annotations.")
    )
    rule = "position scores t/T − i/I" + (
        "; attention of a plain system: what a word was attended to before the step" if len(found.rules) > 1 else ""
    )
    covered = "Coverage: what stood for the word before the step. " if any(map(_covers, found.systems)) else ""
    now = "left out" if options.present == "out" else "taken for FUTURE"
    caption = (
        f"References of {found.sentences} sentences{left}, true links. Of a source word at a step: PAST / (PAST + "
        "FUTURE), against whether all its counterparts are written or all are to come; words that are just being "
        f"written are {now}. Rules without a model: {rule}.{probed} 95% bootstrap intervals over sentences. "
        f"{covered}{margins}Calibration error: {', '.join(errors)}.{redundant}"
    )
    return drawn(found.areas.table, found.bins, found.redundant, WORDS, by_name, caption)


def _bare(name: str) -> str:
    """The system's own name, which gives its look."""
    return name.removeprefix(ATTENTION).removeprefix(PROBE).removeprefix(COVERAGE)


def _covers(name: str) -> bool:
    return name.startswith(COVERAGE)


def _margin(found: Truths, system: str, rule: str) -> str:
    """How far a system is above a rule, on all words and on moved ones."""
    from analyses.past_future_gold import WORDS

    told = []
    for words, title in WORDS.items():
        delta, low, high = found.areas.difference(system, rule, words)
        told.append(f"{title} {delta:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−"))
    return f"{system} over {rule.removeprefix('rule: ')} {', '.join(told)}"
