"""Sentences of a test set with translations, scores and annotations of runs.

Collects stored statistics and annotations for `analyses.sentences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analyses.sentences import Sentences, segment_scores, sentence_table
from workbench.evaluation import scoring
from workbench.figures.request import Request
from workbench.store import segment_annotations
from workbench.store.runs import short_names

DOCUMENT = "document"


def of_request(request: Request, metrics: Sequence[str], root: Path) -> tuple[Sentences, list[str]]:
    """Sentences of the request's runs with scores, and problems of the annotations below `root`.

    Without references there are texts only. Raises RunError if the runs had different versions of the test set.
    """
    names = short_names(request.runs)
    translations_of_runs = {run.name: run.translations(request.test) for run in request.runs}
    scoring.check_alike(translations_of_runs)
    test_set = next(iter(translations_of_runs.values())).test_set
    scores = {}
    if test_set.references is not None:
        for metric in metrics:
            statistics_of_runs = scoring.statistics_of_all(request.runs, translations_of_runs, metric)
            scores[scoring.METRIC_NAMES[metric]] = {
                names[run]: segment_scores(statistics) for run, statistics in statistics_of_runs.items()
            }
    annotations, problems = segment_annotations.read_all(root, request.test, len(test_set.sources))
    if test_set.documents is not None:
        annotations = annotations.assign(**{DOCUMENT: test_set.documents})
    outputs = {names[run]: translations.hypotheses for run, translations in translations_of_runs.items()}
    return sentence_table(
        test_set.sources, test_set.references, outputs, scores, names.get(request.base), annotations
    ), problems
