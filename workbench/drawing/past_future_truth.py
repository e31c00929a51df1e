"""The drawing of PAST and FUTURE against the truth: runs beside rules that need no model, on the same words and steps.

References of the controlled corpus are forced. Options: `sentences` (the first so many, or all); `layer` (of the
attention that is cumulated, from 1; mean unless told); `present` (out, future: where words that are just being written
belong); `probe` (what a probe that was taught the truth reads in each run's states: true, or of how many sentences).
Runs that separate no PAST and FUTURE serve as a rule, by their attention; coverage counts as what it says of each word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.drawing import Request, drawing, short_names, styles
from workbench.drawing.past_future_measures import sentences_of
from workbench.past_future import Sentence, coverage_form, guided
from workbench.past_future_probe import LESSONS, read_by_probe
from workbench.runs import Run, RunError
from workbench.true_links import truths

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.past_future_truth import Areas
    from workbench.figures.grammar import Figure

POSITION = "rule: position"
ATTENTION = "rule: attention of "
COVERAGE = "coverage of "
PROBE = "probe: states of "


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


def against_truth(request: Request) -> Truths:
    """The truth beside runs and rules; raises RunError where it cannot be had."""
    import numpy as np
    import pandas as pd

    from analyses import past_future_truth as truth
    from analyses.past_future import REDUNDANT, past_share

    asked = str(request.options.get("present", "out"))
    if asked not in ("out", "future"):
        raise RunError(f"present {asked!r}: choose out or future")
    present: truth.Present = "future" if asked == "future" else "out"
    with_models = [run for run in request.runs if not run.outside]
    if not with_models:
        request.runs[0].require_model()
    known = truths(with_models[0], request.test)
    names = short_names(request.runs)
    separating = guided(with_models)
    plain = [run for run in with_models if run not in separating]
    found = {run: {one.row: one for one in sentences_of(request, run, "reference")} for run in (*separating, *plain)}
    for run in [run for run in plain if not any(len(one.attention) for one in found[run].values())]:
        plain.remove(run)
        del found[run]
    if not found:
        raise RunError("none of the runs attends to the source or separates PAST and FUTURE; choose another")
    shared = sorted(set.intersection(*(set(own) for own in found.values())))
    rows = [row for row in shared if all(known[row].fits(*own[row].words) for own in found.values())]
    if not rows:
        raise RunError("the runs' pieces join to other words than the truth counts, in every sentence")
    cells = {
        row: truth.cells(known[row].links, known[row].source_words, known[row].target_words, present) for row in rows
    }
    table = pd.concat([own.assign(sentence=row) for row, own in cells.items()], ignore_index=True)

    def scored(score) -> np.ndarray:
        """A score [T, I] of each sentence, at its cells."""
        return np.concatenate([score(row)[own["step"], own["word"]] for row, own in cells.items()])

    scores = {names[run.name]: scored(lambda row, run=run: past_share(found[run][row].mass)) for run in separating}
    covering = [run for run in plain if any(len(one.coverage) for one in found[run].values())]
    scores |= {
        f"{COVERAGE}{names[run.name]}": scored(lambda row, run=run: _covered(run, found[run][row])) for run in covering
    }
    probabilities = dict(scores)
    for run in plain:
        name = f"{ATTENTION}{names[run.name]}"
        scores[name] = scored(lambda row, run=run: truth.cumulated(_layer(request, run, found[run][row])))
        probabilities[name] = scores[name]
    lessons = _lessons(request)
    for run in (*separating, *plain) if lessons else ():
        read = dict(zip(rows, read_by_probe(run, request.test, rows, present, lessons), strict=True))
        scores[f"{PROBE}{names[run.name]}"] = scored(lambda row, read=read: read[row])
    scores[POSITION] = scored(lambda row: truth.by_position(known[row].target_words, known[row].source_words))
    bins = [truth.calibration(table, values).assign(system=name) for name, values in probabilities.items()]
    redundant = [
        truth.redundancy(
            [found[run][row].mass for row in rows],
            [known[row].without for row in rows],
            [known[row].source_words for row in rows],
        ).assign(system=names[run.name])
        for run in separating
        if found[run][rows[0]].mass.shape[-1] > REDUNDANT
    ]
    return Truths(
        truth.areas(table, scores),
        pd.concat(bins, ignore_index=True),
        pd.concat(redundant, ignore_index=True) if redundant else pd.DataFrame(),
        (*(names[run.name] for run in separating), *(f"{COVERAGE}{names[run.name]}" for run in covering)),
        tuple(name for name in scores if name.startswith("rule: ")),
        len(rows),
        len(shared) - len(rows),
    )


def _covered(run: Run, sentence: Sentence) -> np.ndarray:
    """How far each word was covered before each step [T, I]; of coverage that is taken from one, what was taken."""
    from analyses.content_states import before_each_step

    taken = coverage_form(run) == "subtractive"
    return before_each_step(1 - sentence.coverage if taken else sentence.coverage)


def _layer(request: Request, run: Run, sentence: Sentence) -> np.ndarray:
    """The attention [T, I] of a layer, or the mean over all."""
    asked, layers = request.options.get("layer", "mean"), len(sentence.attention)
    if asked == "mean":
        return sentence.attention.mean(0)
    if isinstance(asked, bool) or not str(asked).isdecimal() or not 1 <= int(asked) <= layers:
        raise RunError(f"layer {asked!r} of {run.name}: write mean, or a number from 1 to {layers}")
    return sentence.attention[int(asked) - 1]


def _lessons(request: Request) -> int:
    """Of how many sentences the probes are taught; 0 where there are to be none."""
    asked = str(request.options.get("probe", "false")).lower()
    if asked in ("true", "false"):
        return LESSONS if asked == "true" else 0
    if not asked.isdecimal() or not int(asked):
        raise RunError(f"probe {asked!r}: write true, or of how many sentences it is to be taught")
    return int(asked)


@drawing("past-future-truth", options=("sentences", "layer", "present", "probe"))
def _truth(request: Request) -> Figure:
    from analyses.past_future_truth import WORDS, calibration_error
    from workbench.figures.past_future_measures import against_truth as drawn

    found = against_truth(request)
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
    now = "left out" if request.options.get("present", "out") == "out" else "taken for FUTURE"
    caption = (
        f"References of {found.sentences} sentences{left}, true links. Of a source word at a step: PAST / (PAST + "
        "FUTURE), against whether all its counterparts are written or all are to come; words that are just being "
        f"written are {now}. Rules without a model: {rule}.{probed} 95 % bootstrap intervals over sentences. "
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
    from analyses.past_future_truth import WORDS

    told = []
    for words, title in WORDS.items():
        delta, low, high = found.areas.difference(system, rule, words)
        told.append(f"{title} {delta:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−"))
    return f"{system} over {rule.removeprefix('rule: ')} {', '.join(told)}"
