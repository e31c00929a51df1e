"""The drawing of rescored n-best lists: BLEU over the weight of one part, and of chosen weights beside the search's.

Options: `weights` (PART=NUMBER with commas between; what is not named has weight 1, the length 0), `part` (whose weight
runs; the first that is free unless told), `dev` (another test set whose lists the weights are tuned on, too).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.figures.registry import drawing
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


def asked_weights(given: object) -> dict[str, float]:
    """The weights of an option: a mapping, or PART=NUMBER with commas between."""
    from core_models.settings import settings_in

    if isinstance(given, dict):
        return {str(part): float(value) for part, value in given.items()}
    found = {}
    for setting in settings_in(str(given)):
        part, _, value = setting.partition("=")
        try:
            found[part.strip()] = float(value)
        except ValueError:
            raise RunError(
                f"weights {given!r}: write PART=NUMBER with commas between, such as past=1,length=0.2"
            ) from None
    return found


def _rescored(request: Request) -> list[_Rescored]:
    """Every run with its weights; raises RunError for a weight that no run has a part for."""
    from analyses.reranking import tuned

    names, asked = short_names(request.runs), asked_weights(request.options.get("weights", ""))
    lists = {run: measure.read(run, request.test) for run in request.runs}
    parts = list(dict.fromkeys(part for own in lists.values() for part in own.parts))
    for part in asked:
        if part not in parts:
            raise RunError(f"weights: none of the runs has a part {part!r}; there are {', '.join(parts)}")
    dev = str(request.options.get("dev", ""))
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


def _choices(one: _Rescored, dev: object) -> dict[str, Mapping[str, float] | None]:
    found: dict[str, Mapping[str, float] | None] = {SEARCH: None, ONES: one.lists.ones}
    if one.chosen != one.lists.ones:
        found[CHOSEN] = one.chosen
    return found if one.tuned is None else {**found, f"{TUNED} {dev}": one.tuned}


def said(weights: Mapping[str, float] | None) -> str:
    """Weights in words; those that are 0 are left out."""
    kept = [f"{PARTS.get(part, part)} {value:g}" for part, value in (weights or {}).items() if value]
    return ", ".join(kept).replace("-", "−")


def weights_table(request: Request) -> pd.DataFrame:
    """`analyses.reranking.compared` of every run: system, choice, weights (in words), score, low, high, delta,
    delta_low, delta_high, p_value, changed."""
    return _table(_rescored(request), request.options.get("dev"))


def _table(found: list[_Rescored], dev: object) -> pd.DataFrame:
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


@drawing("rescoring", options=("weights", "part", "dev"))
def _rescoring(request: Request) -> Figure:
    import pandas as pd

    from analyses.reranking import curve
    from workbench.views.reranking.plots import rescored

    found, dev = _rescored(request), request.options.get("dev")
    free = list(dict.fromkeys(part for one in found for part in one.lists.free))
    part = str(request.options.get("part", free[0]))
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
