"""Drawings of layer routing in one sentence (Dou 2019, Figure 4 and its table), forced through the runs, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import ForcedOptions, up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.layer_routing.measure import kind_of, routed, routings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

    Pass = tuple[Run, str, SentenceTrace, np.ndarray]  # with its short name, what was forced, what it assigns

__all__ = ["assignments", "layer_names", "printed_curve", "routed", "rows_of"]
Side = Literal["encoder", "decoder"]
SIDE = "Whose layers are routed"


class RoutingOptions(ForcedOptions):
    """Options of all figures of layer routing in one sentence."""

    side: Side = Field("encoder", description=SIDE)
    position: NonNegativeInt | Literal["mean"] = Field("mean", description="The position, from 0; the mean over all")
    iteration: PositiveInt | Literal["all"] = Field("all", description="The iteration, from 1")


class RoutingMapsOptions(RoutingOptions):
    """Options of the figure `routing-maps`."""

    order: Literal["natural", "sorted"] = Field("natural", description="Capsules by number, or by layer")
    difference: bool = Field(False, description="Growth since the iteration before")
    limit: Annotated[float, Field(gt=1)] = Field(8.0, description="The share that has the last shade, of even shares")


class RoutingCurvesOptions(RoutingOptions):
    """Options of the figure `routing-curves`."""

    layers: bool = Field(False, description="Also each layer by itself")


def assignments(run: Run, looked: SentenceTrace, side: str) -> np.ndarray:
    """[iterations, positions, layers, capsules] of a pass; raises RunError where the run has none."""
    return looked.array(f"{kind_of(run, side)}.{side}.assignments")


def layer_names(run: Run, count: int) -> list[str]:
    """1, 2, … or with the embedding first."""
    embedded = any(options.get("include_embedding") for options in routings(run).values())
    return ["embedding", *map(str, range(1, count))] if embedded else [str(layer + 1) for layer in range(count)]


def rows_of(names: Sequence[list[str]]) -> list[str]:
    """The layers of several runs, the embedding first where one of them has it: what their rows stand at."""
    return sorted({name for own in names for name in own}, key=lambda name: 0 if name == "embedding" else int(name))


def _passes(request: Request, options: RoutingOptions) -> list[Pass]:
    """Every run with its short name, its pass and what it assigns."""
    names, side, found = short_names(request.runs), options.side, []
    for run in request.runs:
        kind_of(run, side)
        looked = trace_sentence(run, request.test, request.sentence, *options.forced)
        found.append((run, names[run.name], looked, assignments(run, looked, side)))
    return found


def _reaching(passes: Sequence[Pass], options: RoutingOptions, place: int | None) -> list[Pass]:
    """The passes whose sentence reaches to a position: own translations are of different lengths."""
    return [one for one in passes if place is None or place < len(_tokens(one[2], options))]


def _tokens(looked: SentenceTrace, options: RoutingOptions) -> tuple[str, ...]:
    return looked.source if options.side == "encoder" else looked.target


def _position(passes: Sequence[Pass], options: RoutingOptions) -> int | None:
    """The position that is looked at, up to the last one of the longest sentence; None for the mean over all."""
    longest = max(len(_tokens(looked, options)) for _, _, looked, _ in passes)
    return up_to(options, "position", longest - 1)


def _iteration(array: np.ndarray, options: RoutingOptions) -> int | None:
    """The iteration that is looked at; None for all."""
    return up_to(options, "iteration", len(array))


def _said(passes: Sequence[Pass], options: RoutingOptions, place: int | None) -> str:
    """Which position it is, in words, by system where they have other words there."""
    if place is None:
        return "mean over the positions of the sentence"
    encoder = options.side == "encoder"
    told: dict[str, list[str]] = {}
    for _, name, looked, _ in _reaching(passes, options, place):
        tokens = _tokens(looked, options)
        before = " ".join(tokens[:place]) or "the beginning"
        said = tokens[place] if encoder else f"where {tokens[place]} is predicted after {before}"
        told.setdefault(said, []).append(name)
    by_system = [f"{', '.join(names)}: {said}" for said, names in told.items()]
    if len(by_system) > 1:
        return f"at position {place} ({'; '.join(by_system)})"
    return f"at position {place} ({said})" if encoder else f"at position {place}, {said}"


def _at(array: np.ndarray, place: int | None) -> np.ndarray:
    """Assignments of one position, or of all: [iterations, positions, layers, capsules]."""
    return array if place is None else array[:, [place]]


def _order(array: np.ndarray, order: str) -> np.ndarray:
    """Capsules by number; or by the layer that sends them most in the last iteration, then by how much, in the mean
    over all positions: the same at each of them."""
    import numpy as np

    last = array[-1].mean(0)
    return np.lexsort((-last.max(0), last.argmax(0))) if order == "sorted" else np.arange(last.shape[-1])


def _maps(options: RoutingMapsOptions, name: str, array: np.ndarray, place: int | None) -> list[pd.DataFrame]:
    """The cells of one run, a table for each iteration; the order of the capsules is the same in all."""
    import numpy as np

    from workbench.plotting.axes import matrix_table

    shares = _at(array, place).mean(1) * array.shape[-1]
    difference = options.difference
    order, wanted = _order(array, options.order), _iteration(array, options)
    if difference and (wanted == 1 or len(array) == 1):
        raise RunError("the first iteration has no growth to show; choose a later one, or leave out difference")
    tables = []
    for number, matrix in enumerate(np.diff(shares, axis=0) if difference else shares, start=1 + difference):
        if wanted in (None, number):
            table = matrix_table(matrix[:, order], x="place", y="layer").assign(iteration=number, system=name)
            tables.append(table.assign(capsule=order[table["place"]]))
    return tables


@figure("routing-maps", scope="sentence", options=RoutingMapsOptions)
def _routing_maps(request: Request, options: RoutingMapsOptions) -> Figure:
    """How much of its vote each layer sends to each capsule, by iteration."""
    import pandas as pd

    from workbench.views.layer_routing.plots import routing_maps

    passes = _passes(request, options)
    place = _position(passes, options)
    made = [
        (layer_names(run, array.shape[2]), _maps(options, name, array, place))
        for run, name, _, array in _reaching(passes, options, place)
    ]
    layers = rows_of([own for own, _ in made])
    placed = [table.assign(layer=table["layer"] + layers.index(own[0])) for own, tables in made for table in tables]
    what = "growth of the share since the iteration before" if options.difference else "share of a layer's vote"
    sorting = "the layer that sends them most in the last iteration over all positions, then by how much"
    return routing_maps(
        pd.concat(placed, ignore_index=True),
        layers,
        options.limit,
        options.difference,
        f"Layers of the {options.side}, {_said(passes, options, place)}: {what}, times the number of capsules (1: "
        "even). Capsules by "
        f"{sorting if options.order == 'sorted' else 'number'}, the numbers below are their own.",
    )


@figure("routing-curves", scope="sentence", options=RoutingCurvesOptions)
def _routing_curves(request: Request, options: RoutingCurvesOptions) -> Figure:
    """Entropy, diversity and other measures of layer routing, by iteration."""
    import numpy as np
    import pandas as pd

    from workbench.views.layer_routing.plots import routing_curves

    tables, ceilings, marked = [], set(), None
    passes = _passes(request, options)
    place = _position(passes, options)
    for run, name, _, array in _reaching(passes, options, place):
        ceilings.add(float(np.log(array.shape[-1])))
        marked = _iteration(array, options)
        chosen = _at(array, place)
        tables.append(_curve(chosen, name))
        if options.layers:
            names = layer_names(run, array.shape[2])
            tables += [
                _curve(chosen[:, :, [layer]], f"{name}, layer {names[layer]}").assign(diversity=np.nan)
                for layer in range(array.shape[2])
            ]
    return routing_curves(
        pd.concat(tables, ignore_index=True),
        styles(request),
        printed_curve(),
        sorted(ceilings),
        f"Layers of the {options.side}, {_said(passes, options, place)}. Entropy of where a layer's votes go "
        "(dotted: "
        "even shares); diversity: one minus the mean cosine of what two capsules get. Hollow: reported by Dou 2019, of "
        "six layers and 512 capsules on other text. Its Equations 17 and 18 do not give its numbers; these forms do.",
        marked,
    )


def _curve(array: np.ndarray, name: str) -> pd.DataFrame:
    import pandas as pd

    from analyses import routing

    return pd.DataFrame(
        {
            "series": name,
            "iteration": range(1, len(array) + 1),
            "entropy": routing.entropy(array),
            "diversity": routing.diversity(array),
            "effective": routing.effective_capsules(array),
            "dead": routing.dead_share(array),
        }
    )


@figure("routing-along", scope="sentence", options=RoutingOptions)
def _routing_along(request: Request, options: RoutingOptions) -> Figure:
    """Entropy of where the layers' votes go, at each position; of the last iteration unless one is chosen."""
    import numpy as np
    import pandas as pd

    from analyses import routing
    from workbench.views.layer_routing.plots import routing_along

    tables, iteration = [], 1
    passes = _passes(request, options)
    at = _position(passes, options)
    for _, name, looked, array in passes:
        iteration = _iteration(array, options) or len(array)
        each = routing.entropy(array[iteration - 1][:, None])  # a mean for each position, not over them
        tables.append(
            pd.DataFrame(
                {
                    "system": name,
                    "position": range(len(each)),
                    "token": _tokens(looked, options)[: len(each)],
                    "entropy": each,
                    "effective": np.exp(each),
                }
            )
        )
    marked = "" if at is None else f" Marked: {_said(passes, options, at)}."
    return routing_along(
        pd.concat(tables, ignore_index=True),
        iteration,
        at,
        f"Layers of the {options.side}, iteration {iteration}: entropy of where the layers' votes go, at each "
        f"position.{marked}",
    )


def printed_curve() -> pd.DataFrame:
    """What Dou 2019 prints for iterations 1 to 3."""
    import pandas as pd

    from workbench.papers.load import library

    rows = library()["dou-2019"].table("figure-4").rows
    return pd.DataFrame(
        [
            {"iteration": number, **{measure: float(value) for measure, value in row.values.items()}}
            for number, row in enumerate(rows, start=1)
        ]
    )
