"""Drawings of PAST and FUTURE in one sentence (Zheng 2019, Figure 4), which is forced through the runs, live.

Runs that separate no PAST and FUTURE are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from workbench.evaluation.gold_alignments import has_truth, truths
from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import MOST_CELLS, ForcedOptions, Places, up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.measure import ASSIGNMENTS, CROSS, MASS, guided, require_guided

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.alignment import Link
    from workbench.plotting.grammar import Figure

MOST_WORDS, MOST_STEPS = 6, 10  # life lines, and steps of a strip, unless told
_MARKED = {
    "sure": "Squares: true counterparts",
    "attention": "Dots: the source word that a target word attends to most",
}


class MassOptions(ForcedOptions):
    """Options of all figures of PAST and FUTURE in one sentence."""

    iteration: PositiveInt | Literal["last"] = Field("last", description="After which iteration mass is read, from 1")
    pieces: bool = Field(False, description="Pieces, not joined to words")
    step: NonNegativeInt | Literal["all"] = Field("all", description="The target position that is looked at, from 0")


class PastFutureOptions(MassOptions):
    """Options of the figure `past-future`."""

    difference: bool = Field(False, description="Also a map of PAST minus FUTURE")
    capsules: bool = Field(False, description="Each capsule by itself, of runs that route to some")


class StripOptions(MassOptions):
    """Options of the figure `past-future-strip`."""

    steps: Places = Field((), description=f"Target positions from 0; {MOST_STEPS} over the sentence unless told")


class LinesOptions(MassOptions):
    """Options of the figure `past-future-lines`."""

    source: Places = Field((), description="Places of source words from 0; those that change most unless told")


@dataclass(frozen=True, eq=False)
class _Shown:
    """One forced sentence of one run: mass [T, I, G] of what is shown, and which of it belongs together."""

    name: str
    sources: list[str]
    targets: list[str]
    mass: np.ndarray
    groups: tuple[str, ...]
    links: set[Link]
    true: bool


def able(request: Request) -> list[Run]:
    """The runs of a request that can be drawn; raises RunError where none can."""
    found = guided(request.runs)
    if not found:
        require_guided(request.runs[0])
    return found


def iterations(looked: SentenceTrace) -> int:
    """After how many iterations of its routing a pass can be looked at; 1 where nothing is routed."""
    return len(looked.trace[ASSIGNMENTS].values) if ASSIGNMENTS in looked.trace else 1


def _places(name: str, places: tuple[int, ...], last: int) -> list[int]:
    """The places that an option lists; raises RunError for one that is not there."""
    if places and max(places) > last:
        raise RunError(f"{name} {max(places)}: write numbers from 0 to {last}, with commas between")
    return list(dict.fromkeys(places))


def _raw(looked: SentenceTrace, options: MassOptions, capsules: bool) -> np.ndarray:
    """Mass [T, I, G] of the pieces after the iteration that is asked for; of each capsule by itself, [T, I, J]."""
    from analyses.past_future import group_mass

    mass = looked.array(MASS)
    iteration = up_to(options, "iteration", iterations(looked))
    if ASSIGNMENTS not in looked.trace:
        if capsules:
            raise RunError(f"{looked.run.name} routes nothing to capsules; choose a run of gdr, or leave out capsules")
        return mass
    chosen = looked.array(ASSIGNMENTS)[-1 if iteration is None else iteration - 1]
    return chosen if capsules else group_mass(chosen, mass.shape[-1])


def _shown(request: Request, options: MassOptions, runs: list[Run], capsules: bool = False) -> list[_Shown]:
    from analyses.attention import joined
    from analyses.past_future import of_words

    names = short_names(request.runs)
    found = []
    for run in runs:
        looked = trace_sentence(run, request.test, request.sentence, *options.forced)
        mass, sources, targets = _raw(looked, options, capsules), list(looked.source), list(looked.target)
        if not options.pieces:
            mass = of_words(mass, targets, sources, looked.trace[MASS].sums_to_one)
            sources, targets = joined(sources), joined(targets)
        named = _groups(looked.array(MASS).shape[-1], mass.shape[-1])
        links = _links(request, options, run, looked, sources, targets)
        found.append(_Shown(names[run.name], sources, targets, mass, named, *links))
    return found


def _groups(groups: int, count: int) -> tuple[str, ...]:
    """The names of groups, or of the capsules that are side by side in each."""
    from analyses.past_future import GROUPS

    names = [name.upper() for name in GROUPS[:groups]]
    each = count // groups
    return tuple(names) if each == 1 else tuple(f"{name} {place}" for name in names for place in range(1, each + 1))


def _links(
    request: Request, options: MassOptions, run: Run, looked: SentenceTrace, sources: list[str], targets: list[str]
) -> tuple[set[Link], bool]:
    """The true links of a reference in words, else each target token to the source token it attends to most."""
    from analyses import attention
    from analyses.alignment import from_attention
    from analyses.attention import END

    ends = len(sources) - (sources[-1] == END), len(targets) - (targets[-1] == END)
    true = options.target == "reference" and not options.pieces
    if true and has_truth(run, request.test):
        truth = truths(run, request.test)[request.sentence]
        if truth.fits(*ends):
            return set(truth.links), True
    if CROSS not in looked.trace:
        return set(), False
    weights = attention.average(looked.array(CROSS))
    if not options.pieces:
        weights = attention.to_words(weights, looked.target, looked.source)
    return from_attention(weights[: ends[1], : ends[0]]), False


def _cells(shown: _Shown, groups: tuple[str, ...]) -> pd.DataFrame:
    """A row a cell of the first groups of the mass."""
    import pandas as pd

    from workbench.plotting.axes import matrix_table

    tables = [
        matrix_table(shown.mass[..., place].T, shown.targets, shown.sources, "step", "word").assign(group=group)
        for place, group in enumerate(groups)
    ]
    return pd.concat(tables, ignore_index=True).assign(system=shown.name)


def _marked(found: list[_Shown]) -> tuple[pd.DataFrame, str]:
    """The links of all as a table, and what marks them, in sentences."""
    import pandas as pd

    rows = [(one.name, j, i, "sure" if one.true else "attention") for one in found for i, j in sorted(one.links)]
    table = pd.DataFrame(rows, columns=["system", "step", "word", "kind"])
    return table, "".join(f" {said}." for kind, said in _MARKED.items() if (table["kind"] == kind).any())


def _said(options: MassOptions, found: list[_Shown]) -> str:
    """What the mass is of, in words."""
    last = options.iteration == "last"
    after = "after the last iteration" if last else f"after iteration {options.iteration}"
    rule = "Pieces." if options.pieces else "Words: the mean over their pieces."
    two = " Of two attentions a word has the sum of its pieces, and its groups do not sum to one."
    return f"{after}, along {options.spoken}. {rule}{'' if all(_even(one.mass) for one in found) else two}"


def _even(mass: np.ndarray) -> bool:
    """Does each word's mass sum to one over groups?"""
    import numpy as np

    return bool(np.allclose(mass.sum(-1), 1, atol=1e-2))


def _step(options: MassOptions, found: list[_Shown]) -> int | None:
    return up_to(options, "step", max(len(one.targets) for one in found) - 1)


@figure("past-future", scope="sentence", options=PastFutureOptions)
def _past_future(request: Request, options: PastFutureOptions) -> Figure:
    """How much of each source word is in PAST and in FUTURE at each step, as maps."""
    import pandas as pd

    from workbench.views.past_future.plots import SIGNED, past_future_maps

    found = _shown(request, options, able(request), options.capsules)
    groups = min((one.groups for one in found), key=len)
    if not all(set(groups) <= set(one.groups) for one in found):
        raise RunError("these runs have not the same capsules; draw them one by one, or leave out capsules")
    cells = len(groups) * sum(len(one.sources) * len(one.targets) for one in found)
    if cells > MOST_CELLS:
        raise RunError(f"{cells} cells are too many for maps; draw fewer runs, or the strip of single steps")
    tables = [_cells(one, groups) for one in found]
    if options.difference and not options.capsules:
        signed = [replace(one, mass=one.mass[..., :1] - one.mass[..., 1:2]) for one in found]
        tables += [_cells(one, (SIGNED,)) for one in signed]
    links, marks = _marked(found)
    missing = " Drawn is what all of these systems have." if any(one.groups != groups for one in found) else ""
    caption = (
        f"Mass of source words {_said(options, found)} A column is the step at which its token is predicted."
        f"{missing}{marks}"
    )
    return past_future_maps(pd.concat(tables, ignore_index=True), links, _step(options, found), caption)


@figure("past-future-strip", scope="sentence", options=StripOptions)
def _strip(request: Request, options: StripOptions) -> Figure:
    """PAST and FUTURE at some steps of the first run, or at one step of all runs."""
    import numpy as np
    import pandas as pd

    from workbench.views.past_future.plots import past_future_strip

    runs = able(request)
    found = _shown(request, options, runs)
    step = _step(options, found)
    if step is not None:
        reaching = [one for one in found if step < len(one.targets)]
        cells = pd.concat([_cells(one, one.groups) for one in reaching], ignore_index=True)
        predicted = " and ".join(dict.fromkeys(repr(one.targets[step]) for one in reaching))
        at = f"at step {step}, where {predicted} is predicted"
        return past_future_strip(cells, None, step, f"Mass of source words {at}, {_said(options, reaching)}")
    one = found[0]
    chosen = _places("steps", options.steps, len(one.targets) - 1)
    if not chosen:
        chosen = sorted(set(np.linspace(0, len(one.targets) - 1, MOST_STEPS).round().astype(int).tolist()))
    links, marks = _marked([one])
    cells = _cells(one, ("PAST", "FUTURE"))
    figure = past_future_strip(
        cells[cells["step"].isin(chosen)],
        links[links["step"].isin(chosen)],
        None,
        f"Two columns for each of {len(chosen)} target words: mass of source words in PAST (P) and FUTURE (F) "
        f"{_said(options, found[:1])}{marks} As Figure 4 of Zheng 2019 has it.",
    )
    return of_the_first(figure, replace(request, runs=tuple(runs)))


@figure("past-future-lines", scope="sentence", options=LinesOptions)
def _lines(request: Request, options: LinesOptions) -> Figure:
    """In which group each of some source words is at each step."""
    import numpy as np
    import pandas as pd

    from analyses.past_future import flips, past_share
    from workbench.views.past_future.plots import past_future_lives

    runs = able(request)
    one = _shown(request, options, runs[:1])[0]
    chosen = _places("source", options.source, len(one.sources) - 1)
    if not chosen:
        change = np.ptp(past_share(one.mass), axis=0)
        chosen = sorted(np.argsort(-change, kind="stable")[:MOST_WORDS].tolist())
    cells = _cells(one, one.groups)
    cells = cells[cells["word"].isin(chosen)].sort_values(["word", "step"], kind="stable")
    top = cells.groupby(["word", "step"])["value"].cumsum()
    lives = cells.assign(top=top, base=top - cells["value"])
    written = pd.DataFrame([(i, j) for i, j in sorted(one.links) if i in chosen], columns=["word", "step"])
    of_words = flips(one.mass) - 1
    flipped = pd.DataFrame({"word": chosen, "flip": [of_words[word] for word in chosen]})
    known = "true counterparts" if one.true else "target words that attend to it most"
    caption = (
        f"What of a source word is in which group {_said(options, [one])} Triangles: {known}. Dashed: the step from "
        "which PAST stays above FUTURE."
    )
    step = _step(options, [one])
    figure = past_future_lives(lives, written, flipped, step, caption)
    return of_the_first(figure, replace(request, runs=tuple(runs)))
