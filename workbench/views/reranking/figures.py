"""Figure of reranked n-best lists: BLEU over the weight of one part, and of chosen weights compared with the search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from core_models.settings import settings_in
from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.plotting.texts import by_system
from workbench.store.runs import Run, RunError, short_names
from workbench.views.reranking import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analyses.reranking import Lists
    from workbench.plotting.grammar import Figure

SEARCH, ONES, CHOSEN, TUNED = "1-best", "all weights 1", "chosen weights", "tuned on"
PARTS = {"past": "PAST", "future": "FUTURE", "future_cost": "future cost", "length": "length", "main": "log P",
         "decoder": "log P of the decoder"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Rescored:
    """N-best lists of a run, with the chosen weights and the tuned ones, if any."""

    name: str
    lists: Lists
    chosen: dict[str, float]
    tuned: dict[str, float] | None


def weights_in(text: str) -> dict[str, float]:
    """Parse weights from comma-separated PART=NUMBER pairs; raises ValueError."""
    try:
        pairs = [setting.split("=") for setting in settings_in(text)]
        return {part.strip(): float(value) for part, value in pairs}
    except ValueError:
        raise ValueError("write PART=NUMBER with commas between, such as past=1,length=0.2") from None


def _weights(weights: object) -> object:
    """Validate a text of weights; a mapping is converted to text."""
    text = ",".join(f"{part}={weight}" for part, weight in weights.items()) if isinstance(weights, dict) else weights
    weights_in(str(text))
    return text


class WeightsOptions(FigureOptions):
    """Weights of the parts of a hypothesis' score."""

    weights: Annotated[str, BeforeValidator(_weights)] = Field(
        "", description="PART=NUMBER with commas between; a part that is not named has 1, the length 0"
    )
    dev: str = Field("", description="Another test set whose lists the weights are tuned on, too")


class RescoringOptions(WeightsOptions):
    """Options of the figure `rescoring`."""

    part: str | None = Field(None, description="Whose weight runs; the first that is free unless told")


def _rescored(request: Request, options: WeightsOptions) -> list[_Rescored]:
    """N-best lists and weights of every run; raises RunError for a weight of an unknown part."""
    from analyses.reranking import tuned

    names, requested = short_names(request.runs), weights_in(options.weights)
    lists = {run: measure.read(run, request.test) for run in request.runs}
    parts = list(dict.fromkeys(part for run_lists in lists.values() for part in run_lists.parts))
    for part in requested:
        if part not in parts:
            raise RunError(f"weights: none of the runs has a part {part!r}; there are {', '.join(parts)}")
    dev = options.dev
    if dev == request.test:
        raise RunError(f"dev {dev!r}: weights tuned on the very sentences that are scored say nothing; name another")
    return [
        _Rescored(
            names[run.name],
            run_lists,
            {**run_lists.ones, **{part: value for part, value in requested.items() if part in run_lists.parts}},
            tuned(measure.read(run, dev)) if dev else None,
        )
        for run, run_lists in lists.items()
    ]


def _choices(run_lists: _Rescored, dev: str) -> dict[str, Mapping[str, float] | None]:
    choices: dict[str, Mapping[str, float] | None] = {SEARCH: None, ONES: run_lists.lists.ones}
    if run_lists.chosen != run_lists.lists.ones:
        choices[CHOSEN] = run_lists.chosen
    return choices if run_lists.tuned is None else {**choices, f"{TUNED} {dev}": run_lists.tuned}


def weights_text(weights: Mapping[str, float] | None) -> str:
    """Text of the weights other than 0."""
    texts = [f"{PARTS.get(part, part)} {value:g}" for part, value in (weights or {}).items() if value]
    return ", ".join(texts).replace("-", "−")


def weights_table(request: Request, options: WeightsOptions) -> pd.DataFrame:
    """`analyses.reranking.compared` of every run.

    Columns: system, choice, weights (as text), score, low, high, delta, delta_low, delta_high, p_value, changed.
    """
    return _table(_rescored(request, options), options.dev)


def _table(rescored: list[_Rescored], dev: str) -> pd.DataFrame:
    import pandas as pd

    from analyses.reranking import compared

    tables = []
    for run_lists in rescored:
        choices = _choices(run_lists, dev)
        comparison = compared(run_lists.lists, choices)
        tables.append(
            comparison.assign(
                system=run_lists.name, weights=[weights_text(choices[name]) for name in comparison["choice"]]
            )
        )
    table = pd.concat(tables, ignore_index=True)
    first = ["system", "choice", "weights"]
    return table[[*first, *(name for name in table if name not in first)]]


def free_parts(runs: tuple[Run, ...] | list[Run], test: str) -> list[str]:
    """Parts of all runs whose weights may be chosen."""
    return list(dict.fromkeys(part for run in runs for part in measure.read(run, test).free))


@figure("rescoring", scope="test_set", options=RescoringOptions)
def _rescoring(request: Request, options: RescoringOptions) -> Figure:
    """BLEU of reranked n-best lists over the weight of one part, and of chosen weights compared with the search."""
    import pandas as pd

    from analyses.reranking import curve
    from workbench.views.reranking.plots import rescored

    systems, dev = _rescored(request, options), options.dev
    free = list(dict.fromkeys(part for system in systems for part in system.lists.free))
    part = options.part or free[0]
    if part not in free:
        raise RunError(f"part {part!r}: its weight is not free; choose {', '.join(free)}")
    curves = [
        curve(system.lists, system.chosen, part).assign(system=system.name)
        for system in systems
        if part in system.lists.free
    ]
    table = _table(systems, dev)
    sizes = {
        system.name: f"{len(system.lists)} lists, {len(system.lists.values) / len(system.lists):.1f} hypotheses each"
        for system in systems
    }
    fixed_weights = {
        system.name: weights_text({name: value for name, value in system.chosen.items() if name != part})
        for system in systems
    }
    tuned = "".join(
        f" Tuned on {dev}, by a grid: {system.name}: {weights_text(system.tuned)}."
        for system in systems
        if system.tuned
    )
    caption = (
        "Stored n-best lists, chosen from anew by a weighted sum of log-probabilities (nats) and length (pieces); "
        f"nothing is decoded. BLEU with 95% intervals. {by_system(sizes)}. Left: the weight of "
        f"{PARTS.get(part, part)} runs, the others stay ({by_system(fixed_weights)}).{tuned}"
    )
    figure = rescored(pd.concat(curves, ignore_index=True), table, PARTS.get(part, part), styles(request), caption)
    return replace(
        figure, provenance={**figure.provenance, "signatures": {"BLEU": systems[0].lists.statistics.signature}}
    )
