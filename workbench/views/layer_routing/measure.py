"""Layer routing of a run over a test set, live or from a stored trace: RESULTS/scores/routing-*.npz.

Measured for the trained weights and for controls: the initial weights, votes shuffled over positions, votes exchanged
between layers. What controls show too is not learned. Assignments to 512 capsules are large, so they are reduced batch
by batch. Imports no figure code; torch is imported by the first measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.npz_cache import checked_numbers
from analyses.routing import RoutingStatistics, concatenate, sentence_statistics, shuffle_inputs, shuffle_positions
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
AT_ONCE = 16  # sentences per batch; votes are shuffled over the positions of a batch
_SEED = 1  # of shuffled and exchanged votes
_AXES = {"positions": "S", "entropy": "SIL", "diversity": "SI", "dead": "SI", "activations": "SE", "received": "IN"}
_UNDEFINED = ("diversity", "activations")  # NaN for a single capsule, and where capsules have no activation
CACHE = ResultCache(
    "scores/routing-{}.npz",
    dump=asdict,
    parse=lambda arrays: RoutingStatistics(**checked_numbers(arrays, _AXES, _UNDEFINED)),
)


History = dict[int, RoutingStatistics]  # by step; 0: the initial weights
OVER_TRAINING: ResultCache[History] = ResultCache(
    "scores/routing-over-training-{}.npz",
    dump=lambda history: {
        f"{step}.{name}": array for step, item in history.items() for name, array in asdict(item).items()
    },
    parse=lambda arrays: _history(arrays),
)


def _history(arrays: Mapping[str, Any]) -> History:
    by_step: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        step, _, measure = name.partition(".")
        if measure:
            by_step.setdefault(int(step), {})[measure] = array
    return {step: RoutingStatistics(**checked_numbers(items, _AXES, _UNDEFINED)) for step, items in by_step.items()}


def routings(run: Run) -> dict[str, dict[str, Any]]:
    """Options of a run's layer routing, by mechanism."""
    return {mechanism: options for mechanism, options in run.mechanism_options.items() if mechanism in KINDS}


def routed(run: Run, side: str) -> bool:
    """Return True if the run routes the layers of the side."""
    return any(options.get("side", "both") in (side, "both") for options in routings(run).values())


def routing_mechanism(run: Run, side: str) -> str:
    """Name of the mechanism that routes the layers of a side; raises RunError if there is none."""
    if side not in SIDES:
        raise RunError(f"side {side!r}: choose {' or '.join(SIDES)}")
    for mechanism, options in routings(run).items():
        if options.get("side", "both") in (side, "both"):
            return mechanism
    raise RunError(f"{run.name} routes no layers of its {side}; choose a run of dynamic-routing or em-routing")


def measured(run: Run, side: str, targets: Targets, state: str = "trained") -> RoutingStatistics:
    """Measure the routing of the sentences by a run in one of `STATES`; cached in the run's folder.

    The trained state comes from the stored trace if that has all sentences. Raises RunError, and the errors of loading.
    """
    if state not in STATES:
        raise RunError(f"state {state!r}: choose {', '.join(STATES)}")
    mechanism = routing_mechanism(run, side)

    def measure() -> RoutingStatistics:
        if state == "trained" and (store := _stored(run, mechanism, side, targets)) is not None:
            return concatenate(_from_store(store, mechanism, side, targets))
        return concatenate(_live(run, mechanism, side, targets, state))

    return CACHE.cached(run, {**targets.inputs(run), "side": side, "state": state}, measure)


def checkpoints(run: Run, most: int) -> list[Run]:
    """Checkpoints of a run as runs, by step: at most `most`, evenly spaced, including the last."""
    names = [path.stem.removeprefix("step-") for path in (run.folder / "checkpoints").glob("step-*.safetensors")]
    steps = sorted(int(name) for name in names if is_step(name))
    if len(steps) > most:
        positions = np.linspace(len(steps) - 1, 0, most).round().astype(int)
        steps = [steps[position] for position in sorted(set(positions.tolist()))]
    base_name = run.name.removesuffix(f"@{run.step}") if run.step else run.name
    return [replace(run, name=f"{base_name}@{step}", step=str(step)) for step in steps]


def is_followed(run: Run) -> bool:
    """Return True if the run has checkpoints, or stored measures of checkpoints that are gone."""
    return bool(checkpoints(run, 1)) or any(run.results.glob(OVER_TRAINING.files.format("*")))


def over_training(run: Run, side: str, targets: Targets, most: int) -> History:
    """Measures at the initial weights and at `most` checkpoints at most; cached, also for when these are deleted.

    Raises RunError for a run without checkpoints.
    """
    kept = checkpoints(run, most)
    inputs = {**targets.inputs(run), "side": side, "most": most}
    stored = OVER_TRAINING.load(run, inputs)
    if stored is not None and (not kept or sorted(stored) == [0, *(int(item.step) for item in kept)]):
        return stored
    if not kept:
        raise RunError(
            f"{run.name} has kept no checkpoint, so only its end is known; train one that keeps them: --config "
            "keep_every=STEPS"
        )
    history = {0: measured(run, side, targets, "initial")}
    history |= {int(item.step): measured(item, side, targets) for item in kept}
    OVER_TRAINING.save(run, inputs, history)
    return history


def _live(run: Run, mechanism: str, side: str, targets: Targets, state: str) -> Iterator[RoutingStatistics]:
    from core_models.training.initial_weights import untrained

    model = Opened(untrained(run.folder), Lock()) if state == "initial" else opened(run.reference, stamp(run))
    names = ("votes", "inputs_active") if state in _REVOTED else ("assignments", "activations")
    arrays = [f"{mechanism}.{side}.{name}" for name in names]
    traces = (forced.trace for forced in force(model, targets.in_documents(model.translator), arrays, AT_ONCE))
    if state not in _REVOTED:
        yield from (_spread(trace, mechanism, side) for trace in traces)
        return
    generator = np.random.default_rng(_SEED)
    while batch := list(islice(traces, AT_ONCE)):
        yield from _routed_on_control_votes(model.translator, mechanism, side, batch, generator, state)


def _spread(trace: Trace, mechanism: str, side: str) -> RoutingStatistics:
    active = trace.get(f"{mechanism}.{side}.activations")
    return sentence_statistics(
        trace[f"{mechanism}.{side}.assignments"].values, None if active is None else active.values
    )


def _routed_on_control_votes(
    translator: Translator,
    mechanism: str,
    side: str,
    traces: Sequence[Trace],
    generator: np.random.Generator,
    state: str,
) -> Iterator[RoutingStatistics]:
    """Route the sentences again with votes shuffled over all their positions, or exchanged between layers."""
    arrays_of_votes = [trace[f"{mechanism}.{side}.votes"].values for trace in traces]
    arrays = [np.concatenate(arrays_of_votes)]
    if f"{mechanism}.{side}.inputs_active" in traces[0]:
        arrays.append(np.concatenate([trace[f"{mechanism}.{side}.inputs_active"].values for trace in traces]))
    votes, *active = shuffle_positions(generator, *arrays) if state == "shuffled" else arrays
    votes = shuffle_inputs(generator, votes) if state == "exchanged" else votes
    assignments, activations = route(translator, mechanism, side, votes, *active)
    ends = np.cumsum([len(votes) for votes in arrays_of_votes])[:-1]
    parts = np.split(assignments, ends, axis=1)
    outputs = [None] * len(parts) if activations is None else np.split(activations, ends)
    return (sentence_statistics(part, active) for part, active in zip(parts, outputs, strict=True))


def route(
    translator: Translator, mechanism: str, side: str, votes: np.ndarray, active: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Route given votes [P, L, N, D] and, for EM, activations of the inputs [P, L], with the system's mechanism.

    Returns assignments [iterations, P, L, N] and, for EM, the activations of the outputs [P, N].
    """
    import torch

    module: Any = translator.systems[0].mechanisms[mechanism]
    tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in (votes, active) if array is not None]
    with torch.inference_mode():
        routed = module.route(*tensors, *module.betas(side))
    return routed.assignments.numpy(), None if routed.activations is None else routed.activations.numpy()


def _stored(run: Run, mechanism: str, side: str, targets: Targets) -> TraceStore | None:
    """Stored trace of the run, if it has the assignments of all sentences."""
    if targets.run.reference != run.reference:
        return None
    return stored_traces(run, targets.test, [f"{mechanism}.{side}.assignments"], targets.pieces)


def _from_store(store: TraceStore, mechanism: str, side: str, targets: Targets) -> Iterator[RoutingStatistics]:
    names = [
        name for name in (f"{mechanism}.{side}.assignments", f"{mechanism}.{side}.activations") if name in store.names
    ]
    for row in targets.pieces:
        yield _spread({name: store.array(name, row) for name in names}, mechanism, side)
