"""Drawings of layer routing (Dou 2019, Figure 4 and its table): a sentence forced through the runs, live.

Options of both: `target` and `text` as for attention; `side` (encoder, decoder).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.drawing import Request, drawing, short_names, styles
from workbench.inside import Looked, look
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from workbench.figures.grammar import Figure

KINDS = ("em_routing", "dynamic_routing")
SIDES = {"encoder": "source", "decoder": "target"}
_MAPS = {"target", "text", "side", "position", "order", "difference", "limit"}


def routed(run: Run, side: str) -> bool:
    """Does the run route the layers of this side?"""
    return any(options.get("side", "both") in (side, "both") for options in _routings(run).values())


def _routings(run: Run) -> dict[str, dict[str, Any]]:
    """The options of what routes layers in a run, by its kind."""
    entries = [] if run.outside else run.config.model.mechanisms
    return {kind: options or {} for entry in entries for kind, options in entry.items() if kind in KINDS}


def assignments(run: Run, looked: Looked, side: str) -> np.ndarray:
    """[iterations, positions, layers, capsules] of a pass; raises RunError where the run has none."""
    if side not in SIDES:
        raise RunError(f"side {side!r}: choose {' or '.join(SIDES)}")
    for kind in _routings(run):
        if f"{kind}.{side}.assignments" in looked.trace:
            return looked.trace[f"{kind}.{side}.assignments"].values
    raise RunError(f"{run.name} routes no layers of its {side}; choose a run of dynamic-routing or em-routing")


def layer_names(run: Run, count: int) -> list[str]:
    """1, 2, … or with the embedding first."""
    embedded = any(options.get("include_embedding") for options in _routings(run).values())
    return ["embedding", *map(str, range(1, count))] if embedded else [str(layer + 1) for layer in range(count)]


def _passes(request: Request) -> list[tuple[Run, str, Looked, np.ndarray]]:
    names = short_names(request.runs)
    target, text = str(request.options.get("target", "own")), str(request.options.get("text", ""))
    side = str(request.options.get("side", "encoder"))
    found = []
    for run in request.runs:
        looked = look(run, request.test, request.sentence, target, text)
        found.append((run, names[run.name], looked, assignments(run, looked, side)))
    return found


def _shares(array: np.ndarray, looked: Looked, request: Request) -> tuple[np.ndarray, str]:
    """[iterations, layers, capsules] at a position or on average, and which in words."""
    position = request.options.get("position", "mean")
    if position == "mean":
        return array.mean(1), "mean over all positions"
    tokens = looked.source if request.options.get("side", "encoder") == "encoder" else looked.target
    if not str(position).isdecimal() or int(position) >= len(tokens):
        raise RunError(f"position {position!r}: write mean, or a number from 0 to {len(tokens) - 1}")
    return array[:, int(position)], f"at position {position} ({tokens[int(position)]})"


def _order(shares: np.ndarray, order: str) -> np.ndarray:
    """Capsules by the layer that sends them most in the last iteration, then by how much; or by number."""
    import numpy as np

    if order not in ("sorted", "natural"):
        raise RunError(f"order {order!r}: choose sorted or natural")
    last = shares[-1]
    return np.lexsort((-last.max(0), last.argmax(0))) if order == "sorted" else np.arange(last.shape[-1])


@drawing("routing-maps", of_a_sentence=True)
def _routing_maps(request: Request) -> Figure:
    """Options besides: position (mean, or from 0), order (sorted, natural), difference (to the one before), limit."""
    import numpy as np
    import pandas as pd

    from workbench.figures.axes import matrix_table
    from workbench.figures.routing import routing_maps

    if unknown := sorted(set(request.options) - _MAPS):
        raise RunError(f"there is no option {unknown[0]!r}; there is {', '.join(sorted(_MAPS))}")
    difference = request.options.get("difference") in (True, "true")
    limit = float(request.options.get("limit", 8.0))
    if not limit > 1:
        raise RunError(f"limit {limit:g}: write a number above 1, of even shares")
    tables: list[pd.DataFrame] = []
    layers: list[str] = []
    said = ""
    for run, name, looked, array in _passes(request):
        shares, said = _shares(array, looked, request)
        shares = shares * shares.shape[-1]
        order = _order(shares, str(request.options.get("order", "sorted")))
        layers = max(layers, layer_names(run, shares.shape[1]), key=len)
        shown = np.diff(shares, axis=0) if difference else shares
        for number, matrix in enumerate(shown, start=1 + difference):
            table = matrix_table(matrix[:, order], x="place", y="layer").assign(iteration=number, system=name)
            tables.append(table.assign(capsule=order[table["place"]]))
    if not tables:
        raise RunError("one iteration has no growth to show; leave out difference")
    what = "growth of the share since the iteration before" if difference else "share of a layer's vote"
    sorting = (
        "number" if request.options.get("order") == "natural" else "the layer that sends them most, then by how much"
    )
    return routing_maps(
        pd.concat(tables, ignore_index=True),
        layers,
        limit,
        difference,
        f"Layers of the {request.options.get('side', 'encoder')}, {said}: {what}, times the number of capsules (1: "
        f"even). Capsules by {sorting}.",
    )


@drawing("routing-curves", of_a_sentence=True)
def _routing_curves(request: Request) -> Figure:
    """Options besides: layers (also each layer by itself)."""
    import numpy as np
    import pandas as pd

    from workbench.figures.routing import routing_curves

    tables, ceilings = [], set()
    for run, name, _, array in _passes(request):
        ceilings.add(float(np.log(array.shape[-1])))
        tables.append(_curve(array, name))
        if request.options.get("layers") in (True, "true"):
            names = layer_names(run, array.shape[2])
            tables += [_curve(array[:, :, [layer]], f"{name}, layer {names[layer]}") for layer in range(array.shape[2])]
    side = str(request.options.get("side", "encoder"))
    return routing_curves(
        pd.concat(tables, ignore_index=True),
        styles(request),
        printed_curve(),
        sorted(ceilings),
        f"Layers of the {side}, mean over the positions of the sentence. Entropy of where a layer's votes go (dotted: "
        "even shares); diversity: one minus the mean cosine of what two capsules get. Hollow: printed by Dou 2019, of "
        "six layers and 512 capsules on other text. Its Equations 17 and 18 do not give its numbers; these forms do.",
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


def printed_curve() -> pd.DataFrame:
    """What Dou 2019 prints for iterations 1 to 3."""
    import pandas as pd

    from workbench.papers.reading import library

    rows = library()["dou-2019"].table("figure-4").rows
    return pd.DataFrame(
        [
            {"iteration": number, **{measure: float(value) for measure, value in row.values.items()}}
            for number, row in enumerate(rows, start=1)
        ]
    )
