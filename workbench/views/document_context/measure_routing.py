"""Routing of the context by a run over a test set: RESULTS/scores/context-routing-*.npz.

Couplings and correlations are reduced batch by batch; the result is small and cached in the run's folder. Imports no
figure code; torch is imported by the first measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from analyses.attention import END
from analyses.context_routing import ContextSpread, spread, together
from analyses.npz_cache import checked_numbers
from workbench.evaluation.document_context import CAPSULES, before, routing_context
from workbench.evaluation.forced_decoding import Target, force, opened, stamp
from workbench.evaluation.result_cache import ResultCache, digest
from workbench.store import provenance
from workbench.store.runs import Run, RunError
from workbench.store.translations import TestSet

AT_ONCE = 32  # sentences per batch
_NAMES = (f"{CAPSULES}.couplings", f"{CAPSULES}.correlations", "context.distance")
_AXES = {"words": "S", "each": "SIM", "far": "SIDK"}
CACHE = ResultCache(
    "scores/context-routing-{}.npz",
    dump=asdict,
    parse=lambda arrays: ContextSpread(**checked_numbers(arrays, _AXES, may_be_nan=["far"])),
)


def measured(run: Run, test: str, sentences: int | None = None) -> ContextSpread:
    """Measure the routing of the first `sentences` sentences (None: all) that have context.

    The routing does not depend on translations. Raises RunError if no sentence has context, and the errors of loading.
    """
    routing_context([run])
    run.require_model()
    test_set = run.translations(test).test_set
    count = len(test_set.sources) if sentences is None else min(sentences, len(test_set.sources))

    def measure() -> ContextSpread:
        spreads = list(_live(run, test_set, count))
        if not spreads:
            raise RunError(
                f"none of the first {count} sentences of {test!r} has a sentence before it in its document: there is "
                "no context to measure"
            )
        return together(spreads)

    documents = test_set.documents[:count] if test_set.documents is not None else None
    inputs = {"model": provenance.digests(run, "")["model"], "texts": digest([test_set.sources[:count], documents])}
    return CACHE.cached(run, inputs, measure)


def _live(run: Run, test_set: TestSet, count: int) -> Iterator[ContextSpread]:
    model = opened(run.reference, stamp(run))
    context_options = model.translator.context
    # Capsules are computed before the first target word, so any translations will do: empty ones and the sources.
    outputs = test_set.sources if context_options.outputs else None
    contexts = [before(test_set, row, context_options.sentences, outputs) for row in range(count)]
    targets = [Target(row, test_set.sources[row], "", (END,), item) for row, item in enumerate(contexts) if item.count]
    for item in force(model, targets, _NAMES, AT_ONCE):
        couplings, correlations, distances = (item.trace[name].values for name in _NAMES)
        yield spread(couplings, correlations, distances, context_options.sentences)
