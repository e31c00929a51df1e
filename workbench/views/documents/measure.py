"""Documents of a test set: translations side by side, the context that each system read, and document scores.

Collects data of runs; scores are computed by `analyses`. Imports no figure code.
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
    """Rows of every document of a test set, in order; raises RunError without documents, or if the runs' differ."""
    first, *other_sets = (run.translations(test).test_set for run in runs)
    if first.documents is None:
        raise RunError(f"{test} says of no sentence which document it belongs to; translate it with document ids")
    for run, other in zip(runs[1:], other_sets, strict=True):
        if (other.sources, other.documents) != (first.sources, first.documents):
            raise RunError(
                f"{run.name} and {runs[0].name} were tested on different versions of {test}; translate again"
            )
    rows_of_document: dict[str, list[int]] = {}
    for row, document in enumerate(first.documents):
        rows_of_document.setdefault(document, []).append(row)
    return rows_of_document


def sentences_table(runs: Sequence[Run], test: str, document: str) -> pd.DataFrame:
    """Sentences of a document, one per row.

    Columns: sentence (from 0, in the test set), source, reference (if any), the output of each run under its name, and
    for context-aware runs `NAME read` (`describe_read_context`).
    """
    import pandas as pd

    rows_of_document = documents_of(runs, test)
    if document not in rows_of_document:
        from core_models.settings import nearest

        raise RunError(f"{test} has no document {document!r}; {nearest(document, list(rows_of_document))}")
    rows = rows_of_document[document]
    first = runs[0].translations(test).test_set
    columns: dict[str, list] = {"sentence": rows, "source": [first.sources[row] for row in rows]}
    if first.references is not None:
        columns["reference"] = [first.references[row] for row in rows]
    for run in runs:
        hypotheses = run.translations(test).hypotheses
        columns[run.name] = [hypotheses[row] for row in rows]
        if any(context_window(run)):
            columns[f"{run.name} read"] = [describe_read_context(run, first, row) for row in rows]
    return pd.DataFrame(columns)


def describe_read_context(run: Run, test_set: TestSet, sentence: int) -> str:
    """Text of the context sentences that a run read with a sentence.

    Names the first and the last of each stretch of sentences, and whether the run read its translations of them too.
    """
    rows = sorted(row for row in context_rows(test_set, sentence, *context_window(run)) if row is not None)
    if not rows:
        return NONE
    stretches = [
        [row for _, row in group] for _, group in itertools.groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0])
    ]
    text = ", ".join(f"{group[0]} to {group[-1]}" if len(group) > 1 else str(group[0]) for group in stretches)
    return f"{text} with its own translations" if reads_translations(run) else text


def levels_table(runs: Sequence[Run], test: str, metric: str, counting: Counting, samples: int = 1000) -> pd.DataFrame:
    """Corpus and document scores, one row per run.

    Columns: system, score (of the corpus, by sentences), mean (of the documents' scores), document (n-grams over whole
    documents; low and high: 95% bootstrap over documents), documents (their number), signature.
    """
    import pandas as pd

    from analyses.documents import as_segments, by_document
    from analyses.scores import preset
    from analyses.significance import bootstrap_intervals
    from analyses.statistics_cache import cached_extract_all

    translations = {run.name: run.translations(test) for run in runs}
    reference_lines = references(translations, counting.reference)
    counts = documents_of(runs, test)
    ids = translations[runs[0].name].test_set.documents or []
    by_sentence = statistics_of_all(runs, translations, metric, counting=counting)
    document_scores = by_document(by_sentence, ids)
    document_statistics = cached_extract_all(
        {run.name: run.statistics for run in runs},
        {name: as_segments(outputs.hypotheses, ids) for name, outputs in translations.items()},
        [as_segments(lines, ids) for lines in reference_lines],
        metric,
        **preset(counting.preset).options(metric),
    )
    intervals = bootstrap_intervals(document_statistics, samples)
    return pd.DataFrame(
        [
            {
                "system": run.name,
                "score": by_sentence[run.name].total,
                "mean": float(document_scores.loc[document_scores["system"] == run.name, "score"].mean()),
                "document": intervals[run.name].score,
                "low": intervals[run.name].low,
                "high": intervals[run.name].high,
                "documents": len(counts),
                "signature": document_statistics[run.name].signature,
            }
            for run in runs
        ]
    )
