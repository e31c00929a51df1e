"""Measures of PAST and FUTURE layers of a run at every step of a test set: RESULTS/scores/content-*.npz.

Sentences are forced batch by batch; one number per measure and step is kept. Imports no figure code; torch is imported
by the first measurement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.npz_cache import checked_numbers
from workbench.evaluation.forced_decoding import force_in_documents, targets_of
from workbench.evaluation.result_cache import ResultCache
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.traces import Trace

LAYERS = "past_future_layers"
_OF_LAYERS = ("norm", "change", "update_gate", "cosine_context", "cosine_word")
_OF_HEADS = ("log_prob", "rank")
NAMES = (
    *(f"{LAYERS}.{side}.{measure}" for side in ("past", "future") for measure in _OF_LAYERS),
    *(f"{LAYERS}.whole.{measure}" for measure in ("cosine", "distance")),
    *(f"{side}.{measure}" for side in ("past", "future") for measure in _OF_HEADS),
    *_OF_HEADS,
)
AT_ONCE = 32  # sentences per batch


def sides_of(run: Run) -> tuple[str, ...]:
    """PAST and FUTURE layers of a run, past before future; empty without such layers."""
    options = run.mechanism_options.get(LAYERS)
    layers = () if options is None else options.get("layers", ("past", "future"))
    return tuple(side for side in ("past", "future") if side in layers)


def layered(runs: Sequence[Run]) -> list[Run]:
    """Runs with PAST or FUTURE layers."""
    return [run for run in runs if sides_of(run)]


def steps_of(trace: Trace) -> dict[str, np.ndarray]:
    """Values [T] of one trace by SIDE.MEASURE; `whole`: both layers, `system`: the system's own prediction."""
    steps = {}
    for name in NAMES:
        if name in trace:
            short = name.removeprefix(f"{LAYERS}.")
            steps[short if "." in short else f"system.{short}"] = np.asarray(trace[name].values, dtype=np.float32)
    return steps


def measured(run: Run, test: str, target: str, sentences: int | None = None) -> list[dict[str, np.ndarray]]:
    """`steps_of` the first `sentences` sentences of a test set (None: all), with translations or references forced.

    The result is cached in the run's folder. Raises RunError for a run without PAST and FUTURE layers.
    """
    if not sides_of(run):
        raise RunError(f"{run.name} has no PAST or FUTURE layer; choose a run of pfrnn-loss, prnn or frnn-gru-i")
    targets = targets_of(run, test, target, sentences)

    def measure() -> list[dict[str, np.ndarray]]:
        return [steps_of(forced.trace) for forced in force_in_documents(run, targets, NAMES, AT_ONCE)]

    return CACHE.cached(run, targets.inputs(run), measure)


def _dump(sentences: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Concatenate the steps of all sentences: values [measures, steps]."""
    names = list(sentences[0])
    lengths = np.array([len(steps["system.log_prob"]) for steps in sentences])
    values = np.stack([np.concatenate([steps[name] for steps in sentences]) for name in names])
    return {"names": np.array(json.dumps(names)), "lengths": lengths, "values": values}


def _parse(arrays: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
    numbers = checked_numbers(arrays, {"lengths": "S", "values": "MT"})
    lengths, values, names = numbers["lengths"], numbers["values"], json.loads(str(arrays["names"]))
    if lengths.sum() != values.shape[1]:
        raise ValueError(f"{values.shape[1]} steps are not {lengths.sum()}")
    parts = [np.split(row, np.cumsum(lengths)[:-1]) for row in values]
    return [dict(zip(names, arrays_of_sentence, strict=True)) for arrays_of_sentence in zip(*parts, strict=True)]


CACHE = ResultCache("scores/content-{}.npz", _dump, _parse)
