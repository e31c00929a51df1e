"""All sentences of a test set beside the runs that translated it, from their stored statistics and the annotations.

Gathers; `analyses.sentences` does the rest.
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
    """The sentences of the request's runs under some metrics, and what is wrong with annotations below `root`.

    Without references there are texts only. Raises RunError where the runs had different versions of the test set.
    """
    names = short_names(request.runs)
    opened = {run.name: run.translations(request.test) for run in request.runs}
    scoring.check_alike(opened)
    test = next(iter(opened.values())).test_set
    scores = {}
    if test.references is not None:
        for metric in metrics:
            found = scoring.statistics_of_all(request.runs, opened, metric)
            scores[scoring.METRIC_NAMES[metric]] = {
                names[run]: segment_scores(statistics) for run, statistics in found.items()
            }
    given, problems = segment_annotations.read_all(root, request.test, len(test.sources))
    if test.documents is not None:
        given = given.assign(**{DOCUMENT: test.documents})
    outputs = {names[run]: translations.hypotheses for run, translations in opened.items()}
    return sentence_table(test.sources, test.references, outputs, scores, names.get(request.base), given), problems
