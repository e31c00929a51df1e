"""How a run routes the sentences before over a test set, measured live: RESULTS/scores/context-routing-KEY.npz.

Couplings and correlations are reduced as they come, some sentences at a time; what is left is small and kept beside the
run. Knows runs, no figure; torch comes with the first measurement.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields

from analyses.context_routing import ContextSpread, spread, together
from analyses.npz_cache import read_arrays, write_arrays
from workbench.evaluation.document_context import CAPSULES, Before, before, given, routing_context
from workbench.store.runs import Run, RunError
from workbench.store.translations import TestSet

AT_ONCE = 32  # sentences whose arrays are held
_FORMAT = 2
_NAMES = (f"{CAPSULES}.couplings", f"{CAPSULES}.correlations", "context.distance")


def measured(run: Run, test: str, sentences: int | None = None) -> ContextSpread:
    """Of those of the first so many sentences (None: all) that have a context; what is translated has no say in it.

    Raises RunError where none has, and what loading does.
    """
    routing_context([run])
    run.require_model()
    found = run.translations(test).test_set
    count = len(found.sources) if sentences is None else min(sentences, len(found.sources))
    path = run.statistics / f"context-routing-{_key(run, found, count)}.npz"
    stored = read_arrays(path)
    names = [field.name for field in fields(ContextSpread)]
    if stored is not None and set(stored) == set(names):
        return ContextSpread(**stored)
    spreads = list(_live(run, found, count))
    if not spreads:
        raise RunError(
            f"none of the first {count} sentences of {test!r} has a sentence before it in its document: there is no "
            "context to measure"
        )
    whole = together(spreads)
    with contextlib.suppress(OSError):  # a run for reading only: measured again the next time
        write_arrays(path, **{name: getattr(whole, name) for name in names})
    return whole


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


def _key(run: Run, test: TestSet, count: int) -> str:
    """What a measurement depends on, in short."""
    from workbench.store.provenance import digests

    documents = test.documents[:count] if test.documents is not None else None
    said = [_FORMAT, digests(run, "")["model"], test.sources[:count], documents]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:24]
