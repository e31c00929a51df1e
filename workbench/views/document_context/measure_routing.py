"""How a run routes the sentences before over a test set, measured live: RESULTS/scores/context-routing-*.npz.

Couplings and correlations are reduced as they come, some sentences at a time; what is left is small and kept beside the
run. Knows runs, no figure; torch comes with the first measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from analyses.context_routing import ContextSpread, spread, together
from analyses.npz_cache import checked_numbers
from workbench.evaluation.document_context import CAPSULES, Before, before, given, routing_context
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
    import core_models

    translator = core_models.load(run.reference)
    reach, reads_outputs = translator.context.sentences, translator.context.outputs
    chosen = [(row, before(test, row, reach)) for row in range(count)]
    chosen = [(row, one) for row, one in chosen if one.there]
    for begin in range(0, len(chosen), AT_ONCE):
        some = chosen[begin : begin + AT_ONCE]
        # Capsules are made before the first word: any translation will do, and an empty one is the shortest.
        contexts = [Before(one.sources, one.sources if reads_outputs else None) for _, one in some]
        traces = translator.trace([test.sources[row] for row, _ in some], [["</s>"]] * len(some), _NAMES,
                                  **given(*contexts))  # fmt: skip
        for trace in traces:
            couplings, correlations, distances = (trace[name].values for name in _NAMES)
            yield spread(couplings, correlations, distances, reach)
