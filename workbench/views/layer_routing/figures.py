"""Figures of layer routing in one force-decoded sentence (Dou 2019, Figure 4 and its table)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import ForcedOptions, number_up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.layer_routing.measure import routed, routing_mechanism, routings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

    Pass = tuple[Run, str, SentenceTrace, np.ndarray]  # run, short name, trace, assignments

__all__ = ["assignments", "layer_names", "printed_curve", "routed", "rows_of"]
Side = Literal["encoder", "decoder"]
SIDE = "Whose layers are routed"
EntropyUnit = Literal["share", "nats"]
ENTROPY_UNIT: Any = Field("share", description="Entropy as a share of log N, that of even shares, or in nats")


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


class RoutingAlongOptions(RoutingOptions):
    """Options of the figure `routing-along`."""

    entropy: EntropyUnit = ENTROPY_UNIT


class RoutingCurvesOptions(RoutingOptions):
    """Options of the figure `routing-curves`."""

    entropy: EntropyUnit = ENTROPY_UNIT
    layers: bool = Field(False, description="Also each layer by itself")


def assignments(run: Run, trace: SentenceTrace, side: str) -> np.ndarray:
    """Assignments [iterations, positions, layers, capsules] of a trace; raises RunError if the run has none."""
    return trace.array(f"{routing_mechanism(run, side)}.{side}.assignments")


def layer_names(run: Run, count: int) -> list[str]:
    """Layer names "1", "2", …, after "embedding" if it is routed too."""
    embedded = any(options.get("include_embedding") for options in routings(run).values())
    return ["embedding", *map(str, range(1, count))] if embedded else [str(layer + 1) for layer in range(count)]


def rows_of(names: Sequence[list[str]]) -> list[str]:
    """Layer names of several runs in the order of rows, the embedding first."""
    return sorted(
        {name for run_layers in names for name in run_layers}, key=lambda name: 0 if name == "embedding" else int(name)
    )


def _passes(request: Request, options: RoutingOptions) -> list[Pass]:
    """Runs of a request with short name, trace and assignments."""
    names, side, passes = short_names(request.runs), options.side, []
    for run in request.runs:
        routing_mechanism(run, side)
        trace = trace_sentence(run, request.test, request.sentence, *options.forced_target)
        passes.append((run, names[run.name], trace, assignments(run, trace, side)))
    return passes


def _passes_with_position(passes: Sequence[Pass], options: RoutingOptions, position: int | None) -> list[Pass]:
    """Passes whose sentence has the position; translations of the runs differ in length."""
    return [run_pass for run_pass in passes if position is None or position < len(_tokens(run_pass[2], options))]


def _tokens(trace: SentenceTrace, options: RoutingOptions) -> tuple[str, ...]:
    return trace.source if options.side == "encoder" else trace.target


def _position(passes: Sequence[Pass], options: RoutingOptions) -> int | None:
    """Chosen position, at most the last one of the longest sentence; None for the mean over all."""
    longest = max(len(_tokens(trace, options)) for _, _, trace, _ in passes)
    return number_up_to(options, "position", longest - 1)


def _iteration(array: np.ndarray, options: RoutingOptions) -> int | None:
    """Chosen iteration; None for all."""
    return number_up_to(options, "iteration", len(array))


def _position_text(passes: Sequence[Pass], options: RoutingOptions, position: int | None) -> str:
    """Caption of the position with its token, by system if the tokens differ."""
    from workbench.plotting.axes import token_texts

    if position is None:
        return "mean over the positions of the sentence"
    encoder = options.side == "encoder"
    by_description: dict[str, list[str]] = {}
    for _, name, trace, _ in _passes_with_position(passes, options, position):
        tokens = token_texts(_tokens(trace, options))
        before = " ".join(tokens[:position]) or "the beginning"
        description = tokens[position] if encoder else f"where {tokens[position]} is predicted after {before}"
        by_description.setdefault(description, []).append(name)
    by_system = [f"{', '.join(names)}: {description}" for description, names in by_description.items()]
    if len(by_system) > 1:
        return f"at position {position} ({'; '.join(by_system)})"
    return f"at position {position} ({description})" if encoder else f"at position {position}, {description}"


def _at_position(array: np.ndarray, position: int | None) -> np.ndarray:
    """Assignments of one position, or of all: [iterations, positions, layers, capsules]."""
    return array if position is None else array[:, [position]]


def _order(array: np.ndarray, order: str) -> np.ndarray:
    """Order of the capsules: by number, or sorted by their strongest layer and then by its share.

    Sorting uses the last iteration and the mean over all positions, so it is the same at each position.
    """
    import numpy as np

    last = array[-1].mean(0)
    return np.lexsort((-last.max(0), last.argmax(0))) if order == "sorted" else np.arange(last.shape[-1])


def _maps(options: RoutingMapsOptions, name: str, array: np.ndarray, position: int | None) -> list[pd.DataFrame]:
    """Cells of one run, one table for each iteration, with one order of capsules."""
    import numpy as np

    from workbench.plotting.axes import matrix_table

    shares = _at_position(array, position).mean(1) * array.shape[-1]
    difference = options.difference
    order, iteration = _order(array, options.order), _iteration(array, options)
    if difference and (iteration == 1 or len(array) == 1):
        raise RunError("the first iteration has no growth to show; choose a later one, or leave out difference")
    tables = []
    for number, matrix in enumerate(np.diff(shares, axis=0) if difference else shares, start=1 + difference):
        if iteration in (None, number):
            table = matrix_table(matrix[:, order], x="place", y="layer").assign(iteration=number, system=name)
            tables.append(table.assign(capsule=order[table["place"]]))
    return tables


@figure("routing-maps", scope="sentence", options=RoutingMapsOptions)
def _routing_maps(request: Request, options: RoutingMapsOptions) -> Figure:
    """Share of each layer's vote for each capsule, by iteration."""
    import pandas as pd

    from workbench.views.layer_routing.plots import routing_maps

    passes = _passes(request, options)
    position = _position(passes, options)
    maps = [
        (layer_names(run, array.shape[2]), _maps(options, name, array, position))
        for run, name, _, array in _passes_with_position(passes, options, position)
    ]
    layers = rows_of([names for names, _ in maps])
    placed = [table.assign(layer=table["layer"] + layers.index(names[0])) for names, tables in maps for table in tables]
    value_text = "growth of the share since the iteration before" if options.difference else "share of a layer's vote"
    sorting = "the layer that sends them most in the last iteration over all positions, then by how much"
    return routing_maps(
        pd.concat(placed, ignore_index=True),
        layers,
        options.limit,
        options.difference,
        f"Layers of the {options.side}, {_position_text(passes, options, position)}: {value_text}, times the number "
        "of capsules (1: even). Capsules by "
        f"{sorting if options.order == 'sorted' else 'number'}, the numbers below are their own.",
    )


@figure("routing-curves", scope="sentence", options=RoutingCurvesOptions)
def _routing_curves(request: Request, options: RoutingCurvesOptions) -> Figure:
    """Entropy, diversity and other measures of layer routing, by iteration."""
    import numpy as np
    import pandas as pd

    from workbench.views.layer_routing.plots import routing_curves

    tables, marked = [], None
    passes = _passes(request, options)
    position = _position(passes, options)
    for run, name, _, array in _passes_with_position(passes, options, position):
        marked = _iteration(array, options)
        selected = _at_position(array, position)
        tables.append(_curve(selected, name))
        if options.layers:
            names = layer_names(run, array.shape[2])
            tables += [
                _curve(selected[:, :, [layer]], f"{name}, layer {names[layer]}").assign(diversity=np.nan)
                for layer in range(array.shape[2])
            ]
    table, reported = pd.concat(tables, ignore_index=True), printed_curve()
    return routing_curves(
        table,
        styles(request),
        reported,
        ceilings(table["capsules"], options.entropy),
        f"Layers of the {options.side}, {_position_text(passes, options, position)}. Entropy of where a layer's votes "
        f"go{entropy_text(options.entropy)} (dotted: "
        "even shares); diversity: one minus the mean cosine of what two capsules get. Hollow: reported by Dou 2019, of "
        f"six layers and 512 capsules on other text{reported_text(options.entropy)}. Its Equations 17 and 18 do not "
        "give its numbers; these forms do.",
        marked,
        options.entropy,
    )


def ceilings(capsules: Iterable[int], unit: EntropyUnit) -> list[float]:
    """The entropies of even shares over these numbers of capsules, in the unit."""
    return [1.0] if unit == "share" else sorted({math.log(count) for count in capsules})


def entropy_text(unit: EntropyUnit) -> str:
    """Addition to a caption for entropies as shares."""
    return ", as a share of log N, N being the system's number of capsules" if unit == "share" else ""


def reported_text(unit: EntropyUnit) -> str:
    """Addition to a caption for reported entropies as shares."""
    return " (entropy divided by log 512)" if unit == "share" else ""


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
            "capsules": array.shape[-1],
        }
    )


@figure("routing-along", scope="sentence", options=RoutingAlongOptions)
def _routing_along(request: Request, options: RoutingAlongOptions) -> Figure:
    """Entropy of where the layers' votes go, at each position; of the last iteration unless one is chosen."""
    import numpy as np
    import pandas as pd

    from analyses import routing
    from workbench.views.layer_routing.plots import routing_along

    tables, iteration = [], 1
    passes = _passes(request, options)
    position = _position(passes, options)
    for _, name, trace, array in passes:
        iteration = _iteration(array, options) or len(array)
        entropies = routing.entropy(array[iteration - 1][:, None])  # a mean for each position, not over them
        tables.append(
            pd.DataFrame(
                {
                    "system": name,
                    "position": range(len(entropies)),
                    "token": _tokens(trace, options)[: len(entropies)],
                    "entropy": entropies,
                    "effective": np.exp(entropies),
                    "capsules": array.shape[-1],
                }
            )
        )
    marked = "" if position is None else f" Marked: {_position_text(passes, options, position)}."
    return routing_along(
        pd.concat(tables, ignore_index=True),
        iteration,
        position,
        f"Layers of the {options.side}, iteration {iteration}: entropy of where the layers' votes "
        f"go{entropy_text(options.entropy)}, at each position.{marked}",
        "source" if options.side == "encoder" else "target",
        options.entropy,
        styles(request),
    )


def printed_curve() -> pd.DataFrame:
    """Reported values of Dou 2019 for iterations 1 to 3, and the number of capsules that they are of."""
    import pandas as pd

    from workbench.papers.load import library

    paper = library()["dou-2019"]
    table = pd.DataFrame(
        [
            {"iteration": number, **{measure: float(value) for measure, value in row.values.items()}}
            for number, row in enumerate(paper.table("figure-4").rows, start=1)
        ]
    )
    return table.assign(capsules=int(paper.claim("capsules").value))
