"""Analyses of runs by name, each a function from a request to a tidy table.

Used by `workbench analyze NAME`, notebooks and pages; the table of a figure's data is the figure's `table`. Other
packages register analyses in `figures.table_registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.evaluation.scoring import METRICS
from workbench.figures.options import FigureOptions, Names
from workbench.figures.request import Request
from workbench.figures.table_registry import analysis
from workbench.store.runs import RunError
from workbench.views.adequacy.figures import AdequacyOptions
from workbench.views.attention.alignment_error_figures import ComparedOptions, compared_table
from workbench.views.attribution.figures import AttributionOptions, sums_table
from workbench.views.scores.figures import CountingOptions

if TYPE_CHECKING:
    import pandas as pd


class ComparisonOptions(CountingOptions):
    """Options of the analysis `comparison`."""

    metrics: Names = Field(("bleu",), description="bleu, chrf, ter, …")
    method: Literal["bootstrap", "randomization", "sign", "bootstrap-sacrebleu"] = Field(
        "bootstrap", description="The paired test; bootstrap-sacrebleu has sacreBLEU's rule for p"
    )


class AllScoresOptions(CountingOptions):
    """Options of the analysis `scores`."""

    metrics: Names = Field(METRICS, description="bleu, chrf, ter, …")


class SentencesOptions(FigureOptions):
    """Options of the analysis `sentences`."""

    metrics: Names = Field(("chrf",), description="Of each sentence: chrf, bleu, ter, …")


class DocumentsOptions(CountingOptions):
    """Options of the analysis `documents`."""

    metric: str = Field("bleu", description="bleu, chrf, ter, …")


@analysis("scores", AllScoresOptions)
def _scores(request: Request, options: AllScoresOptions) -> pd.DataFrame:
    """Corpus scores with 95 % bootstrap intervals and signatures."""
    from workbench.evaluation.scoring import score_table

    return score_table(request.runs, request.test, options.metrics, counting=options.counting)


@analysis("comparison", ComparisonOptions)
def _comparison(request: Request, options: ComparisonOptions) -> pd.DataFrame:
    """Differences of every run to the baseline: interval, p, p after Holm."""
    from workbench.evaluation.scoring import comparison_table

    settings = options.method, options.metrics, options.counting
    return comparison_table(request.runs, request.test, request.base, *settings)


@analysis("sentences", SentencesOptions)
def _sentences(request: Request, options: SentencesOptions) -> pd.DataFrame:
    """Sentences with texts, labels and scores."""
    import pandas as pd

    from workbench.store import segment_annotations
    from workbench.views.segments import measure as segments

    root = segment_annotations.root_of(request.runs[0].folder, request.test)
    gathered, problems = segments.of_request(request, options.metrics, root)
    if problems:
        raise RunError(f"{'; '.join(problems)}; mend or remove {'it' if len(problems) == 1 else 'them'}")
    return (
        pd.concat([gathered.texts, gathered.labels, gathered.values], axis="columns")
        .rename_axis("sentence")
        .reset_index()
    )


@analysis("test-sets")
def _test_sets(request: Request, options: FigureOptions) -> pd.DataFrame:
    """Versions of the test sets that runs have translated: sentences, documents, lengths, suspicious lines, digest."""
    from workbench.views.test_sets.measure import testsets_table

    return testsets_table(request.runs)


@analysis("outputs")
def _outputs(request: Request, options: FigureOptions) -> pd.DataFrame:
    """Outputs of each run: mean lengths, length ratio, empty, odd and repeated outputs, copies of the source."""
    from workbench.views.test_sets.measure import outputs_table

    return outputs_table(request.runs, request.test)


@analysis("lines")
def _lines(request: Request, options: FigureOptions) -> pd.DataFrame:
    """Suspicious lines of source, references and outputs, with the reason."""
    from workbench.views.test_sets.measure import findings_table

    return findings_table(request.runs, request.test)


@analysis("documents", DocumentsOptions)
def _documents(request: Request, options: DocumentsOptions) -> pd.DataFrame:
    """Score of each document, one column for each run."""
    from workbench.views.test_sets.measure import documents_table

    return documents_table(request.runs, request.test, options.metric, options.counting)


@analysis("adequacy-sentences", AdequacyOptions)
def _adequacy_sentences(request: Request, options: AdequacyOptions) -> pd.DataFrame:
    """Translations that leave out or repeat source words, by the links of one aligner; those with most of it first."""
    from workbench.evaluation.adequacy import aligner_of, sentences_table

    aligner, _ = aligner_of(request.runs, request.test, options.aligner)
    return sentences_table(request.runs, request.test, aligner, options.towards)


@analysis("alignment-error", ComparedOptions)
def _alignment_error(request: Request, options: ComparedOptions) -> pd.DataFrame:
    """Alignment error of attention (percent, 95% intervals), and against the baseline: difference, p, p after Holm."""
    return compared_table(request, options)


@analysis("beam-tree")
def _beam_tree(request: Request, options: FigureOptions) -> pd.DataFrame:
    """Nodes of the recorded search of a sentence by run: step, word, prefix, scores, rank, fate, position."""
    import pandas as pd

    from analyses import beam

    trees = {run.name: beam.tree(run.translations(request.test).tree(request.sentence)) for run in request.runs}
    nodes = pd.concat(trees, names=["system", "node"]).reset_index().drop(columns=["id", "y"])
    return nodes.assign(prefix=nodes["prefix"].map(" ".join))


@analysis("attribution", AttributionOptions)
def _attribution(request: Request, options: AttributionOptions) -> pd.DataFrame:
    """Sums of the attributions of every word of a translation and their expected values, with error and steps."""
    return sums_table(request, options)


@analysis("training")
def _training(request: Request, options: FigureOptions) -> pd.DataFrame:
    """Logged values of training, one row for each."""
    from workbench.store.training_logs import training_table

    return training_table(request.runs)
