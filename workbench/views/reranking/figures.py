"""The drawing of rescored n-best lists: BLEU over the weight of one part, and of chosen weights beside the search's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from core_models.settings import settings_in
from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
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
    """The lists of a run, the weights that are chosen for it, and those that are tuned, if any."""

    name: str
    lists: Lists
    chosen: dict[str, float]
    tuned: dict[str, float] | None


def weights_in(text: str) -> dict[str, float]:
    """The weights of PART=NUMBER with commas between; raises ValueError."""
    try:
        pairs = [setting.split("=") for setting in settings_in(text)]
        return {part.strip(): float(value) for part, value in pairs}
    except ValueError:
        raise ValueError("write PART=NUMBER with commas between, such as past=1,length=0.2") from None


def _weights(given: object) -> object:
    """A text of weights that can be read; a mapping of them becomes one."""
    text = ",".join(f"{part}={value}" for part, value in given.items()) if isinstance(given, dict) else given
    weights_in(str(text))
    return text


class WeightsOptions(FigureOptions):
    """Which weights the parts of a hypothesis' score have."""

    weights: Annotated[str, BeforeValidator(_weights)] = Field(
        "", description="PART=NUMBER with commas between; a part that is not named has 1, the length 0"
    )
    dev: str = Field("", description="Another test set whose lists the weights are tuned on, too")


class RescoringOptions(WeightsOptions):
    """Options of the figure `rescoring`."""

    part: str | None = Field(None, description="Whose weight runs; the first that is free unless told")


def _rescored(request: Request, options: WeightsOptions) -> list[_Rescored]:
    """Every run with its weights; raises RunError for a weight that no run has a part for."""
    from analyses.reranking import tuned

    names, asked = short_names(request.runs), weights_in(options.weights)
    lists = {run: measure.read(run, request.test) for run in request.runs}
    parts = list(dict.fromkeys(part for own in lists.values() for part in own.parts))
    for part in asked:
        if part not in parts:
            raise RunError(f"weights: none of the runs has a part {part!r}; there are {', '.join(parts)}")
    dev = options.dev
    if dev == request.test:
        raise RunError(f"dev {dev!r}: weights tuned on the very sentences that are scored say nothing; name another")
    return [
        _Rescored(
            names[run.name],
            own,
            {**own.ones, **{part: value for part, value in asked.items() if part in own.parts}},
            tuned(measure.read(run, dev)) if dev else None,
        )
        for run, own in lists.items()
    ]


def _choices(one: _Rescored, dev: str) -> dict[str, Mapping[str, float] | None]:
    found: dict[str, Mapping[str, float] | None] = {SEARCH: None, ONES: one.lists.ones}
    if one.chosen != one.lists.ones:
        found[CHOSEN] = one.chosen
    return found if one.tuned is None else {**found, f"{TUNED} {dev}": one.tuned}


def said(weights: Mapping[str, float] | None) -> str:
    """Weights in words; those that are 0 are left out."""
    kept = [f"{PARTS.get(part, part)} {value:g}" for part, value in (weights or {}).items() if value]
    return ", ".join(kept).replace("-", "−")


def weights_table(request: Request, options: WeightsOptions) -> pd.DataFrame:
    """`analyses.reranking.compared` of every run: system, choice, weights (in words), score, low, high, delta,
    delta_low, delta_high, p_value, changed."""
    return _table(_rescored(request, options), options.dev)


def _table(found: list[_Rescored], dev: str) -> pd.DataFrame:
    import pandas as pd

    from analyses.reranking import compared

    tables = []
    for one in found:
        choices = _choices(one, dev)
        own = compared(one.lists, choices)
        tables.append(own.assign(system=one.name, weights=[said(choices[name]) for name in own["choice"]]))
    table = pd.concat(tables, ignore_index=True)
    first = ["system", "choice", "weights"]
    return table[[*first, *(name for name in table if name not in first)]]


def free_parts(runs: tuple[Run, ...] | list[Run], test: str) -> list[str]:
    """The parts whose weights may be chosen, of all runs together."""
    return list(dict.fromkeys(part for run in runs for part in measure.read(run, test).free))


@figure("rescoring", scope="test_set", options=RescoringOptions)
def _rescoring(request: Request, options: RescoringOptions) -> Figure:
    """BLEU of stored n-best lists over the weight of one part, and of chosen weights beside the search's."""
    import pandas as pd

    from analyses.reranking import curve
    from workbench.views.reranking.plots import rescored

    found, dev = _rescored(request, options), options.dev
    free = list(dict.fromkeys(part for one in found for part in one.lists.free))
    part = options.part or free[0]
    if part not in free:
        raise RunError(f"part {part!r}: its weight is not free; choose {', '.join(free)}")
    curves = [curve(one.lists, one.chosen, part).assign(system=one.name) for one in found if part in one.lists.free]
    table = _table(found, dev)
    sizes = "; ".join(
        f"{one.name}: {len(one.lists)} lists, {len(one.lists.values) / len(one.lists):.1f} hypotheses each"
        for one in found
    )
    held = {one.name: said({name: value for name, value in one.chosen.items() if name != part}) for one in found}
    fixed = "; ".join(f"{name}: {weights}" for name, weights in held.items())
    tuned = "".join(f" Tuned on {dev}, by a grid: {one.name}: {said(one.tuned)}." for one in found if one.tuned)
    caption = (
        "Stored n-best lists, chosen from anew by a weighted sum of log-probabilities (nats) and length (pieces); "
        f"nothing is decoded. BLEU with 95% intervals. {sizes}. Left: the weight of {PARTS.get(part, part)} runs, the "
        f"others stay ({fixed}).{tuned}"
    )
    figure = rescored(pd.concat(curves, ignore_index=True), table, PARTS.get(part, part), styles(request), caption)
    return replace(
        figure, provenance={**figure.provenance, "signatures": {"BLEU": found[0].lists.statistics.signature}}
    )
