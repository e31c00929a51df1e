"""How a run routes the sentences before over a test set, measured live: RESULTS/scores/context-routing-*.npz.

Couplings and correlations are reduced as they come, some sentences at a time; what is left is small and kept beside the
run. Knows runs, no figure; torch comes with the first measurement.
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

AT_ONCE = 32  # sentences whose arrays are held
_NAMES = (f"{CAPSULES}.couplings", f"{CAPSULES}.correlations", "context.distance")
_AXES = {"words": "S", "each": "SIM", "far": "SIDK"}
CACHE = ResultCache(
    "scores/context-routing-{}.npz",
    dump=asdict,
    parse=lambda arrays: ContextSpread(**checked_numbers(arrays, _AXES, may_be_nan=["far"])),
)


def measured(run: Run, test: str, sentences: int | None = None) -> ContextSpread:
    """Of those of the first so many sentences (None: all) that have a context; what is translated has no say in it.

    Raises RunError where none has, and what loading does.
    """
    routing_context([run])
    run.require_model()
    found = run.translations(test).test_set
    count = len(found.sources) if sentences is None else min(sentences, len(found.sources))

    def measure() -> ContextSpread:
        spreads = list(_live(run, found, count))
        if not spreads:
            raise RunError(
                f"none of the first {count} sentences of {test!r} has a sentence before it in its document: there is "
                "no context to measure"
            )
        return together(spreads)

    documents = found.documents[:count] if found.documents is not None else None
    inputs = {"model": provenance.digests(run, "")["model"], "texts": digest([found.sources[:count], documents])}
    return CACHE.cached(run, inputs, measure)


def _live(run: Run, test: TestSet, count: int) -> Iterator[ContextSpread]:
    model = opened(run.reference, stamp(run))
    use = model.translator.context
    # Capsules are made before the first word: any translations will do, here an empty one and those of the sources.
    outputs = test.sources if use.outputs else None
    contexts = [before(test, row, use.sentences, outputs) for row in range(count)]
    targets = [Target(row, test.sources[row], "", (END,), one) for row, one in enumerate(contexts) if one.there]
    for one in force(model, targets, _NAMES, AT_ONCE):
        couplings, correlations, distances = (one.trace[name].values for name in _NAMES)
        yield spread(couplings, correlations, distances, use.sentences)
