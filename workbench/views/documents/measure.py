"""Documents of a test set: translations side by side, sentence by sentence, what each system read beside them, scores.

Gathers from runs; the scores are those of `analyses`. Knows no figure.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.evaluation.document_context import context_rows, context_window, reads_translations
from workbench.evaluation.scoring import Counting, references, statistics_of_all
from workbench.store.runs import Run, RunError
from workbench.store.translations import TestSet

if TYPE_CHECKING:
    import pandas as pd

NONE = "none"


def documents_of(runs: Sequence[Run], test: str) -> dict[str, list[int]]:
    """The rows of every document of a test set, in order; RunError where the runs know none, or different ones."""
    first, *others = (run.translations(test).test_set for run in runs)
    if first.documents is None:
        raise RunError(f"{test} says of no sentence which document it belongs to; translate it with document ids")
    for run, other in zip(runs[1:], others, strict=True):
        if (other.sources, other.documents) != (first.sources, first.documents):
            raise RunError(
                f"{run.name} and {runs[0].name} were tested on different versions of {test}; translate again"
            )
    found: dict[str, list[int]] = {}
    for row, document in enumerate(first.documents):
        found.setdefault(document, []).append(row)
    return found


def sentences_table(runs: Sequence[Run], test: str, document: str) -> pd.DataFrame:
    """A row a sentence of a document: sentence (from 0, in the test set), source, reference where there is one, and of
    each run by its name the output; `NAME read` says what it read beside the sentence (`read_beside`), of runs that
    read any."""
    import pandas as pd

    known = documents_of(runs, test)
    if document not in known:
        from core_models.settings import nearest

        raise RunError(f"{test} has no document {document!r}; {nearest(document, list(known))}")
    rows = known[document]
    first = runs[0].translations(test).test_set
    columns: dict[str, list] = {"sentence": rows, "source": [first.sources[row] for row in rows]}
    if first.references is not None:
        columns["reference"] = [first.references[row] for row in rows]
    for run in runs:
        hypotheses = run.translations(test).hypotheses
        columns[run.name] = [hypotheses[row] for row in rows]
        if any(context_window(run)):
            columns[f"{run.name} read"] = [read_beside(run, first, row) for row in rows]
    return pd.DataFrame(columns)


def read_beside(run: Run, test: TestSet, sentence: int) -> str:
    """The sentences of a test set that a run read beside one, in words: the first and the last of each stretch of them,
    and whether it read its translations of them too."""
    there = sorted(row for row in context_rows(test, sentence, *context_window(run)) if row is not None)
    if not there:
        return NONE
    stretches = [
        [row for _, row in own] for _, own in itertools.groupby(enumerate(there), key=lambda pair: pair[1] - pair[0])
    ]
    said = ", ".join(f"{own[0]} to {own[-1]}" if len(own) > 1 else str(own[0]) for own in stretches)
    return f"{said} with its own translations" if reads_translations(run) else said


def levels_table(runs: Sequence[Run], test: str, metric: str, counting: Counting, samples: int = 1000) -> pd.DataFrame:
    """A row a run: system, score (of the corpus, sentence by sentence), mean (of the documents' own scores), document
    (n-grams over whole documents, with low and high: 95% bootstrap over documents), documents, signature."""
    import pandas as pd

    from analyses.documents import as_segments, by_document
    from analyses.scores import preset
    from analyses.significance import bootstrap_intervals
    from analyses.statistics_cache import cached_extract_all

    opened = {run.name: run.translations(test) for run in runs}
    towards = references(opened, counting.reference)
    counts = documents_of(runs, test)
    ids = opened[runs[0].name].test_set.documents or []
    by_sentence = statistics_of_all(runs, opened, metric, counting=counting)
    each = by_document(by_sentence, ids)
    whole = cached_extract_all(
        {run.name: run.statistics for run in runs},
        {name: as_segments(found.hypotheses, ids) for name, found in opened.items()},
        [as_segments(lines, ids) for lines in towards],
        metric,
        **preset(counting.preset).options(metric),
    )
    intervals = bootstrap_intervals(whole, samples)
    return pd.DataFrame(
        [
            {
                "system": run.name,
                "score": by_sentence[run.name].total,
                "mean": float(each.loc[each["system"] == run.name, "score"].mean()),
                "document": intervals[run.name].score,
                "low": intervals[run.name].low,
                "high": intervals[run.name].high,
                "documents": len(counts),
                "signature": whole[run.name].signature,
            }
            for run in runs
        ]
    )
