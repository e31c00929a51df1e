"""Analyses of runs by name, each a function from a request to a tidy table: what pages list beside their figures.

`workbench analyze NAME` and notebooks ask for them; what a figure draws is the figure's own `table`. Analyses of other
packages join in `plugins`. Knows no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.evaluation.scoring import Counting
from workbench.figures.request import Request
from workbench.figures.table_registry import analysis
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

_COUNTING = ("preset", "reference")


def _metrics(request: Request, *usual: str) -> Sequence[str]:
    asked = request.options.get("metrics", usual)
    return asked.split(",") if isinstance(asked, str) else asked


def _counting(request: Request) -> Counting:
    return Counting(**{name: request.options[name] for name in _COUNTING if name in request.options})


@analysis("scores", "metrics", *_COUNTING)
def _scores(request: Request) -> pd.DataFrame:
    """Corpus scores with 95% bootstrap intervals and signatures, under the metrics of the option `metrics`."""
    from workbench.evaluation.scoring import METRICS, score_table

    return score_table(request.runs, request.test, _metrics(request, *METRICS), counting=_counting(request))


@analysis("comparison", "metrics", "method", *_COUNTING)
def _comparison(request: Request) -> pd.DataFrame:
    """Every run against the baseline: difference, interval, p, p after Holm; `method` is bootstrap, randomization,
    sign or bootstrap-sacrebleu (sacreBLEU's rule for p)."""
    from workbench.evaluation.scoring import TESTS, comparison_table

    method = request.options.get("method", "bootstrap")
    if method not in TESTS:
        raise RunError(f"method {method!r}: choose {', '.join(TESTS)}")
    metrics, counting = _metrics(request, "bleu"), _counting(request)
    return comparison_table(request.runs, request.test, request.base, method, metrics, counting)


@analysis("sentences", "metrics")
def _sentences(request: Request) -> pd.DataFrame:
    """Every sentence: its texts, its labels, and its scores under the metrics of the option `metrics` (chrf)."""
    import pandas as pd

    from workbench.store import segment_annotations
    from workbench.views.segments import measure as segments

    root = segment_annotations.root_of(request.runs[0].folder, request.test)
    found, problems = segments.of_request(request, _metrics(request, "chrf"), root)
    if problems:
        raise RunError(f"{'; '.join(problems)}; mend or remove {'it' if len(problems) == 1 else 'them'}")
    return pd.concat([found.texts, found.labels, found.values], axis="columns").rename_axis("sentence").reset_index()


@analysis("test-sets")
def _test_sets(request: Request) -> pd.DataFrame:
    """Every version of a test set that the runs have translated: sentences, documents, lengths, odd lines, digest."""
    from workbench.views.test_sets.measure import testsets_table

    return testsets_table(request.runs)


@analysis("outputs")
def _outputs(request: Request) -> pd.DataFrame:
    """What each run wrote: mean lengths, length ratio, empty, odd and repeated outputs, copies of the source."""
    from workbench.views.test_sets.measure import outputs_table

    return outputs_table(request.runs, request.test)


@analysis("lines")
def _lines(request: Request) -> pd.DataFrame:
    """Every odd line of source, references and outputs, and what is odd about it."""
    from workbench.views.test_sets.measure import findings_table

    return findings_table(request.runs, request.test)


@analysis("documents", "metric", *_COUNTING)
def _documents(request: Request) -> pd.DataFrame:
    """The score of each document, a column a run, under the metric of the option `metric` (bleu)."""
    from workbench.views.test_sets.measure import documents_table

    return documents_table(request.runs, request.test, request.options.get("metric", "bleu"), _counting(request))


@analysis("adequacy-sentences", "aligner", "towards")
def _adequacy_sentences(request: Request) -> pd.DataFrame:
    """Translations that leave out or repeat source words, by the links of one aligner; those with most of it first."""
    from workbench.evaluation.adequacy import TOWARDS, aligner_of, sentences_table
    from workbench.figures.options import choice

    aligner, _ = aligner_of(request.runs, request.test, request.options.get("aligner"))
    return sentences_table(request.runs, request.test, aligner, choice(request, "towards", TOWARDS))


@analysis("alignment-error", "links", "layer", "head", "over_seeds")
def _alignment_error(request: Request) -> pd.DataFrame:
    """Alignment error of attention in percent with 95% intervals, and against the baseline: difference, interval, p, p
    after Holm; `links` as for the figure, `over_seeds` where runs of a system are its seeds."""
    from workbench.views.attention.alignment_error_figures import compared_table

    return compared_table(request)


@analysis("beam-tree")
def _beam_tree(request: Request) -> pd.DataFrame:
    """Every node of the recorded search of a sentence: step, word, prefix, scores, rank, fate, place; by run."""
    import pandas as pd

    from analyses import beam

    trees = {run.name: beam.tree(run.translations(request.test).tree(request.sentence)) for run in request.runs}
    whole = pd.concat(trees, names=["system", "node"]).reset_index().drop(columns=["id", "y"])
    return whole.assign(prefix=whole["prefix"].map(" ".join))


@analysis("attribution", "target", "text", "method", "baseline")
def _attribution(request: Request) -> pd.DataFrame:
    """What the attributions of every word of a translation sum to beside what they should, with error and steps."""
    from workbench.views.attribution.figures import sums_table

    return sums_table(request, every_word=True)


@analysis("training")
def _training(request: Request) -> pd.DataFrame:
    """What training logged, a row a value."""
    from workbench.store.runs import training_table

    return training_table(request.runs)
