"""Figures of PAST and FUTURE in one force-decoded sentence (Zheng 2019, Figure 4).

Runs without PAST and FUTURE groups are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import MAX_CELLS, ForcedOptions, Places, number_up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.measure import ASSIGNMENTS, CROSS, MASS, guided, require_guided
from workbench.views.past_future.sentence_truth import Judgement, gold_links, judge, misjudged_cells, with_truth

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.alignment import Link
    from workbench.plotting.grammar import Figure

MOST_WORDS, MOST_STEPS = 6, 10  # defaults: number of life lines, and of steps in a strip
_MARKED = {
    "sure": "Squares: true counterparts",
    "attention": "Dots: the source word that a target word attends to most",
}


class MassOptions(ForcedOptions):
    """Options of all figures of PAST and FUTURE in one sentence."""

    iteration: PositiveInt | Literal["last"] = Field("last", description="After which iteration mass is read, from 1")
    pieces: bool = Field(False, description="Pieces, not joined to words")
    step: NonNegativeInt | Literal["all"] = Field("all", description="The target position that is looked at, from 0")


class JudgedOptions(MassOptions):
    """Options of figures that show which words are misjudged."""

    truth: bool = Field(True, description="Outline misjudged words, where the forced text has gold links")


class PastFutureOptions(JudgedOptions):
    """Options of the figure `past-future`."""

    difference: bool = Field(False, description="Also a map of PAST minus FUTURE")
    capsules: bool = Field(False, description="Each capsule by itself, of runs that route to some")


class StripOptions(JudgedOptions):
    """Options of the figure `past-future-strip`."""

    steps: Places = Field((), description=f"Target positions from 0; {MOST_STEPS} over the sentence unless told")


class LinesOptions(MassOptions):
    """Options of the figure `past-future-lines`."""

    source: Places = Field((), description="Places of source words from 0; those that change most unless told")


@dataclass(frozen=True, eq=False)
class _ForcedSentence:
    """One sentence force-decoded by one run: mass [T, I, G] of the groups, and the links of its words.

    The links are gold links if the sentence is judged by them.
    """

    name: str
    sources: list[str]
    targets: list[str]
    mass: np.ndarray
    groups: tuple[str, ...]
    links: set[Link]
    judgement: Judgement

    @property
    def true(self) -> bool:
        return self.judgement.cells is not None


def drawable_runs(request: Request) -> list[Run]:
    """Runs of a request with PAST and FUTURE groups; raises RunError if there are none."""
    runs = guided(request.runs)
    if not runs:
        require_guided(request.runs[0])
    return runs


def iterations(forced: SentenceTrace) -> int:
    """Number of routing iterations with a trace; 1 without routing."""
    return len(forced.trace[ASSIGNMENTS].values) if ASSIGNMENTS in forced.trace else 1


def _places(name: str, positions: tuple[int, ...], last: int) -> list[int]:
    """Positions of an option without duplicates; raises RunError for one after `last`."""
    if positions and max(positions) > last:
        raise RunError(f"{name} {max(positions)}: write numbers from 0 to {last}, with commas between")
    return list(dict.fromkeys(positions))


def _piece_mass(forced: SentenceTrace, options: MassOptions, capsules: bool) -> np.ndarray:
    """Mass of the pieces after the requested iteration: [T, I, G], or [T, I, J] of single capsules."""
    from analyses.past_future import group_mass

    mass = forced.array(MASS)
    iteration = number_up_to(options, "iteration", iterations(forced))
    if ASSIGNMENTS not in forced.trace:
        if capsules:
            raise RunError(f"{forced.run.name} routes nothing to capsules; choose a run of gdr, or leave out capsules")
        return mass
    assignments = forced.array(ASSIGNMENTS)[-1 if iteration is None else iteration - 1]
    return assignments if capsules else group_mass(assignments, mass.shape[-1])


def _forced_sentences(
    request: Request, options: MassOptions, runs: list[Run], capsules: bool = False
) -> list[_ForcedSentence]:
    from analyses.attention import END, joined
    from analyses.past_future import group_mass, of_words

    names = short_names(request.runs)
    sentences = []
    for run in runs:
        forced = trace_sentence(run, request.test, request.sentence, *options.forced_target)
        mass, sources, targets = (
            _piece_mass(forced, options, capsules),
            list(forced.source),
            list(forced.target),
        )
        if not options.pieces:
            mass = of_words(mass, targets, sources, forced.trace[MASS].sums_to_one)
            sources, targets = joined(sources), joined(targets)
        groups = forced.array(MASS).shape[-1]
        lengths = len(sources) - (sources[-1] == END), len(targets) - (targets[-1] == END)
        words = None if options.pieces else lengths
        truth, reason = gold_links(run, request.test, request.sentence, options, words)
        links = _attended(options, forced, lengths) if truth is None else set(truth.links)
        judgement = judge(names[run.name], truth, group_mass(mass, groups), reason)
        group_names = _groups(groups, mass.shape[-1])
        sentences.append(_ForcedSentence(names[run.name], sources, targets, mass, group_names, links, judgement))
    return sentences


def _groups(groups: int, count: int) -> tuple[str, ...]:
    """Names of the groups, or of the capsules, numbered within each group."""
    from analyses.past_future import GROUPS

    names = [name.upper() for name in GROUPS[:groups]]
    per_group = count // groups
    if per_group == 1:
        return tuple(names)
    return tuple(f"{name} {number}" for name in names for number in range(1, per_group + 1))


def _attended(options: MassOptions, forced: SentenceTrace, lengths: tuple[int, int]) -> set[Link]:
    """A link from each target token to its most attended source token; lengths: of source and target without </s>."""
    from analyses import attention
    from analyses.alignment import from_attention

    if CROSS not in forced.trace:
        return set()
    weights = attention.average(forced.array(CROSS))
    if not options.pieces:
        weights = attention.to_words(weights, forced.target, forced.source)
    return from_attention(weights[: lengths[1], : lengths[0]])


def _cells(sentence: _ForcedSentence, groups: tuple[str, ...]) -> pd.DataFrame:
    """Table of the mass of the first groups, one row per cell."""
    import pandas as pd

    from workbench.plotting.axes import matrix_table

    tables = [
        matrix_table(sentence.mass[..., index].T, sentence.targets, sentence.sources, "step", "word").assign(
            group=group
        )
        for index, group in enumerate(groups)
    ]
    return pd.concat(tables, ignore_index=True).assign(system=sentence.name)


def _link_table(sentences: list[_ForcedSentence]) -> tuple[pd.DataFrame, str]:
    """Table of the links of all sentences, and the caption of their marks."""
    import pandas as pd

    rows = [
        (sentence.name, j, i, "sure" if sentence.true else "attention")
        for sentence in sentences
        for i, j in sorted(sentence.links)
    ]
    table = pd.DataFrame(rows, columns=["system", "step", "word", "kind"])
    return table, "".join(f" {description}." for kind, description in _MARKED.items() if (table["kind"] == kind).any())


def _mass_caption(options: MassOptions, sentences: list[_ForcedSentence]) -> str:
    """Caption that says which mass is shown."""
    last = options.iteration == "last"
    after = "after the last iteration" if last else f"after iteration {options.iteration}"
    rule = "Pieces." if options.pieces else "Words: the mean over their pieces."
    two_attentions = " Of two attentions a word has the sum of its pieces, and its groups do not sum to one."
    one_attention = all(_sums_to_one(sentence.mass) for sentence in sentences)
    return f"{after}, along {options.target_text}. {rule}{'' if one_attention else two_attentions}"


def _sums_to_one(mass: np.ndarray) -> bool:
    """Return True if the mass of each word sums to one over groups."""
    import numpy as np

    return bool(np.allclose(mass.sum(-1), 1, atol=1e-2))


def _step(options: MassOptions, sentences: list[_ForcedSentence]) -> int | None:
    return number_up_to(options, "step", max(len(sentence.targets) for sentence in sentences) - 1)


@figure("past-future", scope="sentence", options=PastFutureOptions)
def _past_future(request: Request, options: PastFutureOptions) -> Figure:
    """Maps of the PAST and FUTURE mass of each source word at each step."""
    import pandas as pd

    from workbench.views.past_future.plots import SIGNED, past_future_maps

    sentences = _forced_sentences(request, options, drawable_runs(request), options.capsules)
    groups = min((sentence.groups for sentence in sentences), key=len)
    if not all(set(groups) <= set(sentence.groups) for sentence in sentences):
        raise RunError("these runs have not the same capsules; draw them one by one, or leave out capsules")
    count = len(groups) * sum(len(sentence.sources) * len(sentence.targets) for sentence in sentences)
    if count > MAX_CELLS:
        raise RunError(f"{count} cells are too many for maps; draw fewer runs, or the strip of single steps")
    tables = [_cells(sentence, groups) for sentence in sentences]
    if options.difference and not options.capsules:
        signed = [replace(sentence, mass=sentence.mass[..., :1] - sentence.mass[..., 1:2]) for sentence in sentences]
        tables += [_cells(sentence, (SIGNED,)) for sentence in signed]
    links, marks = _link_table(sentences)
    missing = (
        " Drawn is what all of these systems have." if any(sentence.groups != groups for sentence in sentences) else ""
    )
    caption = (
        f"Mass of source words {_mass_caption(options, sentences)} A column is the step at which its token is "
        f"predicted.{missing}{marks}"
    )
    judgements = [sentence.judgement for sentence in sentences] if options.truth else []
    misjudged = None if options.capsules else misjudged_cells(judgements)
    cells = pd.concat(tables, ignore_index=True)
    figure = past_future_maps(cells, links, _step(options, sentences), caption, misjudged)
    return with_truth(figure, judgements, outlined=not options.capsules)


@figure("past-future-strip", scope="sentence", options=StripOptions)
def _strip(request: Request, options: StripOptions) -> Figure:
    """PAST and FUTURE at some steps of the first run, or at one step of all runs."""
    import numpy as np
    import pandas as pd

    from workbench.plotting.axes import token_text
    from workbench.views.past_future.plots import past_future_strip

    runs = drawable_runs(request)
    sentences = _forced_sentences(request, options, runs)
    step = _step(options, sentences)
    if step is not None:
        reaching = [sentence for sentence in sentences if step < len(sentence.targets)]
        cells = pd.concat([_cells(sentence, sentence.groups) for sentence in reaching], ignore_index=True)
        predicted = " and ".join(dict.fromkeys(repr(token_text(sentence.targets[step])) for sentence in reaching))
        when = f"at step {step}, where {predicted} is predicted"
        caption = f"Mass of source words {when}, {_mass_caption(options, reaching)}"
        judgements = [sentence.judgement for sentence in reaching] if options.truth else []
        figure = past_future_strip(cells, None, step, caption, misjudged_cells(judgements))
        return with_truth(figure, judgements)
    sentence = sentences[0]
    chosen = _places("steps", options.steps, len(sentence.targets) - 1)
    if not chosen:
        chosen = sorted(set(np.linspace(0, len(sentence.targets) - 1, MOST_STEPS).round().astype(int).tolist()))
    links, marks = _link_table([sentence])
    cells = _cells(sentence, ("PAST", "FUTURE"))
    judgements = [sentence.judgement] if options.truth else []
    figure = past_future_strip(
        cells[cells["step"].isin(chosen)],
        links[links["step"].isin(chosen)],
        None,
        f"Two columns for each of {len(chosen)} target words: mass of source words in PAST (P) and FUTURE (F) "
        f"{_mass_caption(options, sentences[:1])}{marks} As Figure 4 of Zheng 2019 has it.",
        misjudged_cells(judgements),
    )
    return of_the_first(with_truth(figure, judgements), replace(request, runs=tuple(runs)))


@figure("past-future-lines", scope="sentence", options=LinesOptions)
def _lines(request: Request, options: LinesOptions) -> Figure:
    """Groups (PAST, FUTURE, REDUNDANT) of single source words at each step."""
    import numpy as np
    import pandas as pd

    from analyses.past_future import flips, past_share
    from workbench.views.past_future.plots import past_future_lives

    runs = drawable_runs(request)
    sentence = _forced_sentences(request, options, runs[:1])[0]
    chosen = _places("source", options.source, len(sentence.sources) - 1)
    if not chosen:
        change = np.ptp(past_share(sentence.mass), axis=0)
        chosen = sorted(np.argsort(-change, kind="stable")[:MOST_WORDS].tolist())
    cells = _cells(sentence, sentence.groups)
    cells = cells[cells["word"].isin(chosen)].sort_values(["word", "step"], kind="stable")
    top = cells.groupby(["word", "step"])["value"].cumsum()
    lives = cells.assign(top=top, base=top - cells["value"])
    written = pd.DataFrame([(i, j) for i, j in sorted(sentence.links) if i in chosen], columns=["word", "step"])
    flip_steps = flips(sentence.mass) - 1
    flipped = pd.DataFrame({"word": chosen, "flip": [flip_steps[word] for word in chosen]})
    counterparts = "true counterparts" if sentence.true else "target words that attend to it most"
    caption = (
        f"What of a source word is in which group {_mass_caption(options, [sentence])} Triangles: {counterparts}. "
        "Dashed: the step from which PAST stays above FUTURE."
    )
    step = _step(options, [sentence])
    figure = past_future_lives(lives, written, flipped, step, caption)
    return of_the_first(figure, replace(request, runs=tuple(runs)))
