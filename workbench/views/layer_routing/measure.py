"""How a run routes its layers over a test set, measured live or from a stored trace: RESULTS/scores/routing-*.npz.

Of the run as it is trained; of the weights it began from; and of its own votes dealt anew over positions, or exchanged
between layers. What these show too, nobody learned. Assignments to 512 capsules are big, so they are reduced as they
come, a few sentences at a time. Knows runs and traces, no figure; torch comes with the first measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.npz_cache import checked_numbers
from analyses.routing import Spread, exchanged, pooled, shuffled, spread
from core_models.training.progress import is_step
from workbench.evaluation.forced_decoding import Opened, Targets, force, opened, stamp
from workbench.evaluation.result_cache import ResultCache
from workbench.store.runs import Run, RunError
from workbench.store.trace_index import stored_traces

if TYPE_CHECKING:
    from core_models.traces import Trace, TraceStore
    from core_models.translator import Translator

KINDS = ("em_routing", "dynamic_routing")
SIDES = {"encoder": "source", "decoder": "target"}
STATES = {
    "trained": "trained",
    "initial": "at initialization",
    "shuffled": "shuffled votes (permutation control)",
    "exchanged": "votes exchanged between layers",
}
_REVOTED = ("shuffled", "exchanged")
AT_ONCE = 16  # sentences whose arrays are held, and over whose positions votes are dealt anew
_SEED = 1  # of the deal
_AXES = {"positions": "S", "entropy": "SIL", "diversity": "SI", "dead": "SI", "activations": "SE", "received": "IN"}
_UNDEFINED = ("diversity", "activations")  # NaN for a single capsule, and where capsules have no activation
CACHE = ResultCache(
    "scores/routing-{}.npz", dump=asdict, parse=lambda arrays: Spread(**checked_numbers(arrays, _AXES, _UNDEFINED))
)


def routings(run: Run) -> dict[str, dict[str, Any]]:
    """The options of what routes layers in a run, by its kind."""
    return {kind: options for kind, options in run.mechanism_options.items() if kind in KINDS}


def routed(run: Run, side: str) -> bool:
    """Does the run route the layers of this side?"""
    return any(options.get("side", "both") in (side, "both") for options in routings(run).values())


def kind_of(run: Run, side: str) -> str:
    """The kind of what routes the layers of a side; raises RunError where nothing does."""
    if side not in SIDES:
        raise RunError(f"side {side!r}: choose {' or '.join(SIDES)}")
    for kind, options in routings(run).items():
        if options.get("side", "both") in (side, "both"):
            return kind
    raise RunError(f"{run.name} routes no layers of its {side}; choose a run of dynamic-routing or em-routing")


def measured(run: Run, side: str, targets: Targets, state: str = "trained") -> Spread:
    """What routing did in the sentences, by the run in one of STATES; kept beside the run for the next time.

    The trained run's is taken from its stored trace where that has all of them. Raises RunError, and what loading does.
    """
    if state not in STATES:
        raise RunError(f"state {state!r}: choose {', '.join(STATES)}")
    kind = kind_of(run, side)

    def measure() -> Spread:
        if state == "trained" and (store := _stored(run, kind, side, targets)) is not None:
            return pooled(_from_store(store, kind, side, targets))
        return pooled(_live(run, kind, side, targets, state))

    return CACHE.cached(run, {**targets.inputs(run), "side": side, "state": state}, measure)


def checkpoints(run: Run, most: int) -> list[Run]:
    """The checkpoints of a run by step, as systems of their own: at most so many, evenly chosen, with the last."""
    names = [path.stem.removeprefix("step-") for path in (run.folder / "checkpoints").glob("step-*.safetensors")]
    steps = sorted(int(name) for name in names if is_step(name))
    if len(steps) > most:
        places = np.linspace(len(steps) - 1, 0, most).round().astype(int)
        steps = [steps[place] for place in sorted(set(places.tolist()))]
    whole = run.name.removesuffix(f"@{run.step}") if run.step else run.name
    return [replace(run, name=f"{whole}@{step}", step=str(step)) for step in steps]


def _live(run: Run, kind: str, side: str, targets: Targets, state: str) -> Iterator[Spread]:
    from core_models.training.initial_weights import untrained

    model = Opened(untrained(run.folder), Lock()) if state == "initial" else opened(run.reference, stamp(run))
    names = ("votes", "inputs_active") if state in _REVOTED else ("assignments", "activations")
    arrays = [f"{kind}.{side}.{name}" for name in names]
    traces = (one.trace for one in force(model, targets.in_documents(model.translator), arrays, AT_ONCE))
    if state not in _REVOTED:
        yield from (_spread(trace, kind, side) for trace in traces)
        return
    generator = np.random.default_rng(_SEED)
    while some := list(islice(traces, AT_ONCE)):
        yield from _revoted(model.translator, kind, side, some, generator, state)


def _spread(trace: Trace, kind: str, side: str) -> Spread:
    active = trace.get(f"{kind}.{side}.activations")
    return spread(trace[f"{kind}.{side}.assignments"].values, None if active is None else active.values)


def _revoted(
    translator: Translator, kind: str, side: str, traces: Sequence[Trace], generator: np.random.Generator, state: str
) -> Iterator[Spread]:
    """The sentences again, routed on votes that were dealt anew over all their positions, or exchanged at each."""
    each = [trace[f"{kind}.{side}.votes"].values for trace in traces]
    arrays = [np.concatenate(each)]
    if f"{kind}.{side}.inputs_active" in traces[0]:
        arrays.append(np.concatenate([trace[f"{kind}.{side}.inputs_active"].values for trace in traces]))
    votes, *active = shuffled(generator, *arrays) if state == "shuffled" else arrays
    votes = exchanged(generator, votes) if state == "exchanged" else votes
    assignments, activations = route(translator, kind, side, votes, *active)
    ends = np.cumsum([len(votes) for votes in each])[:-1]
    parts = np.split(assignments, ends, axis=1)
    outputs = [None] * len(parts) if activations is None else np.split(activations, ends)
    return (spread(part, active) for part, active in zip(parts, outputs, strict=True))


def route(
    translator: Translator, kind: str, side: str, votes: np.ndarray, active: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """A system's own routing of given votes [P, L, N, D] and, for EM, activations of the inputs [P, L].

    Returns assignments [iterations, P, L, N] and, for EM, the activations of the outputs [P, N].
    """
    import torch

    mechanism: Any = translator.systems[0].mechanisms[kind]
    given = [torch.from_numpy(np.ascontiguousarray(one)) for one in (votes, active) if one is not None]
    with torch.inference_mode():
        found = mechanism.route(*given, *mechanism.betas(side))
    return found.assignments.numpy(), None if found.activations is None else found.activations.numpy()


def _stored(run: Run, kind: str, side: str, targets: Targets) -> TraceStore | None:
    """The run's own stored trace, if it has the assignments of all the sentences."""
    if targets.run.reference != run.reference:
        return None
    return stored_traces(run, targets.test, [f"{kind}.{side}.assignments"], targets.pieces)


def _from_store(store: TraceStore, kind: str, side: str, targets: Targets) -> Iterator[Spread]:
    names = [name for name in (f"{kind}.{side}.assignments", f"{kind}.{side}.activations") if name in store.names]
    for row in targets.pieces:
        yield _spread({name: store.array(name, row) for name in names}, kind, side)
