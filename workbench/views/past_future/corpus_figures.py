"""Figures of PAST and FUTURE over a test set: flip times, overlap rates, under-translation (Zheng 2019).

Runs without PAST and FUTURE groups are left out. Results are cached in the runs' folders (`measure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.evaluation.forced_decoding import TARGETS, references_of, targets_of
from workbench.evaluation.gold_alignments import Truth, has_truth, truths
from workbench.evaluation.translate import prepared_of
from workbench.evaluation.word_frequencies import target_pieces
from workbench.figures.options import CorpusOptions, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future import measure
from workbench.views.past_future.figures import drawable_runs
from workbench.views.past_future.measure import Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

MOST_BARS = 20
RANKED = {"left": "all words together", "mean": "mean of a word", "most": "the word with most"}


class TargetOptions(CorpusOptions):
    """Options of all figures over a test set: which translations are forced, and of how many sentences."""

    target: Literal["own", "reference"] | None = Field(
        None, description="The translations that are forced; references unless told, where there are any"
    )


class FlipTimesOptions(TargetOptions):
    """Options of the figure `flip-times`."""

    links: Literal["truth", "attention"] | None = Field(
        None, description="What belongs together; the truth unless told, where references are forced that have it"
    )


class OverlapOptions(TargetOptions):
    """Options of the figure `overlap`."""

    printed: bool = Field(True, description="Also what the paper says")
    frequency: bool = Field(True, description="Also the rates of the most frequent pieces of the training text alone")
    tokens: bool = Field(False, description="A repeated piece counts each time")
    end: bool = Field(True, description="</s> is one of the pieces")


class UnderTranslationOptions(CorpusOptions):
    """Options of the figure `under-translation`."""

    target: Literal["own", "reference"] = Field("own", description="The translations that are forced")
    by: Literal["left", "mean", "most"] = Field(
        "left", description="What ranks the sentences: all words together, the mean of a word, the word with most"
    )
    aligned: bool = Field(False, description="Ask the frozen aligner too")


def target_of(request: Request, options: TargetOptions, run: Run) -> str:
    """Return "own" or "reference": the requested translations, by default references if the test set has any."""
    default = "own" if run.translations(request.test).test_set.references is None else "reference"
    return options.target or default


def sentences_of(request: Request, options: CorpusOptions, run: Run, target: str) -> list[Sentence]:
    """Sentences of a request, force-decoded by a run."""
    return measure.measured(run, request.test, target, number(options.sentences))


def _forced_text(request: Request, run: Run, target: str, sentences: int) -> str:
    translations = "its own translations" if target == "own" else "references"
    return f"{short_names(request.runs)[run.name]}: {sentences} sentence{'s' * (sentences > 1)}, {translations}"


def flip_tables(request: Request, options: FlipTimesOptions) -> Iterator[tuple[Run, pd.DataFrame, str]]:
    """The `analyses.past_future.flip_table` of each run with PAST and FUTURE, and of what text it is, in words."""
    from analyses.past_future import flip_table

    for run in drawable_runs(request):
        target = target_of(request, options, run)
        sentences, truth = sentences_of(request, options, run, target), _truth_links(request, options, run, target)
        matching = [sentence for sentence in sentences if truth is None or truth[sentence.row].fits(*sentence.words)]
        if not matching:
            raise RunError(f"{run.name}: its pieces join to other words than the truth counts, in every sentence")
        links = [sentence.attended() if truth is None else truth[sentence.row].links for sentence in matching]
        criterion = "the word attended to most" if truth is None else "true links"
        described = f"{_forced_text(request, run, target, len(matching))}, by {criterion}"
        yield run, flip_table([sentence.mass for sentence in matching], links), described


@figure("flip-times", scope="test_set", options=FlipTimesOptions)
def _flip_times(request: Request, options: FlipTimesOptions) -> Figure:
    """Number of steps from the last counterpart of a source word to its move from FUTURE to PAST."""
    import pandas as pd

    from analyses.past_future import distribution
    from workbench.views.past_future.corpus_plots import flip_times

    tables, descriptions = [], []
    for run, flips, described in flip_tables(request, options):
        name = short_names(request.runs)[run.name]
        tables.append(distribution(flips["distance"].to_numpy()).assign(system=name))
        if len(flips):
            changed = 100 * flips["largest"].astype(bool).mean()
            described += f"; the largest group changes from FUTURE to PAST for {changed:.0f} %"
        descriptions.append(described)
    caption = (
        "From the step at which the last counterpart of a source word is written to the first from which PAST stays "
        "above FUTURE; 0: as its counterpart is predicted, 1: one step later. REDUNDANT may hold more than both. Words "
        "without counterpart are left out, and those whose counterpart is the first word. "
        f"{'; '.join(descriptions)}."
    )
    return flip_times(pd.concat(tables, ignore_index=True), styles(request), caption)


@figure("past-future-course", scope="test_set", options=TargetOptions)
def _course(request: Request, options: TargetOptions) -> Figure:
    """Mean mass of a source word in each group over the relative position in the translation."""
    import pandas as pd

    from analyses.past_future import course
    from workbench.views.past_future.corpus_plots import past_future_course

    tables, descriptions = [], []
    for run in drawable_runs(request):
        target = target_of(request, options, run)
        sentences = sentences_of(request, options, run, target)
        table = course([sentence.mass[:, : sentence.source_words] for sentence in sentences])
        tables.append(table.assign(system=short_names(request.runs)[run.name]))
        descriptions.append(_forced_text(request, run, target, len(sentences)))
    caption = (
        "Mean mass of a source word over the relative position, in tenths, with 95% bootstrap intervals over "
        "sentences. Step t of T counts at t / T, so short sentences lack the first tenths. The paper says that PAST "
        f"rises and FUTURE falls to around zero. {'; '.join(descriptions)}."
    )
    return past_future_course(pd.concat(tables, ignore_index=True), caption)


def _truth_links(request: Request, options: FlipTimesOptions, run: Run, target: str) -> list[Truth] | None:
    """Gold links of every sentence; None if attention is to give the links."""
    has_links = target == "reference" and has_truth(run, request.test)
    requested = options.links or ("truth" if has_links else "attention")
    if requested == "truth" and target != "reference":
        raise RunError("the truth has links of references; force them: target=reference")
    return truths(run, request.test) if requested == "truth" else None


@figure("overlap", scope="test_set", options=OverlapOptions)
def _overlap(request: Request, options: OverlapOptions) -> Figure:
    """Overlap of predicted bags of words with the words that are written or still to come."""
    import pandas as pd

    from analyses.overlap import rates
    from analyses.past_future import along
    from workbench.papers.load import library
    from workbench.views.past_future.corpus_plots import overlap_rates

    with_bags = [run for run in drawable_runs(request) if measure.has_bags(run)]
    if not with_bags:
        raise RunError(
            "none of the runs predicts bags of words, which overlap rates are made of; choose gdr-bow or gdr-bow-bca"
        )
    types, end = not options.tokens, options.end
    tables, means, by_frequency, descriptions = [], [], [], []
    for run in with_bags:
        target, name = target_of(request, options, run), short_names(request.runs)[run.name]
        sentences = sentences_of(request, options, run, target)
        past, future = ([sentence.overlap(side, types, end) for sentence in sentences] for side in ("past", "future"))
        tables.append(along({"past": past, "future": future}, list(map(len, past))).assign(system=name))
        means.append(rates(past, future).assign(system=name))
        if options.frequency and (of_frequent := _frequency_overlaps(request, options, run, target)):
            by_frequency.append(rates(*of_frequent).assign(system=name))
        descriptions.append(_forced_text(request, run, target, len(sentences)))
    counted = "distinct pieces" if types else "pieces, repeated ones each time"
    (row,) = library()["zheng-2019"].table("section-4.3").rows
    printed = {side: float(value) for side, value in row.values.items()}
    caption = (
        "How much of the words up to a step (PAST) is among the 5 t most probable of the bag's prediction, and of the "
        f"words after it (FUTURE) among 5 (T − t); {counted}, "
        f"{'</s> among them' if end else 'without </s>'}; over relative position in tenths, "
        "95% bootstrap intervals over sentences; at the right the means of sentences"
        f"{', crosses: the most frequent pieces of the training text alone' if by_frequency else ''}"
        f"{', hollow: reported by Zheng et al. 2019 (other data)' if options.printed else ''}. "
        f"{'; '.join(descriptions)}."
    )
    return overlap_rates(
        pd.concat(tables, ignore_index=True),
        pd.concat(means, ignore_index=True),
        printed if options.printed else None,
        pd.concat(by_frequency, ignore_index=True) if by_frequency else None,
        caption,
    )


def _frequency_overlaps(
    request: Request, options: OverlapOptions, run: Run, target: str
) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """Overlap rates of a prediction by frequency in the run's training text; None if that text is not at hand."""
    from analyses.attention import END
    from analyses.overlap import overlaps, ranks_by_frequency

    try:
        vocabulary, counts = prepared_of(run).target_vocabulary, target_pieces(run)
    except RunError:
        return None
    past, future = [], []
    for sentence in targets_of(run, request.test, target, number(options.sentences)).sentences:
        pieces = sentence.pieces or (*vocabulary.pieces(vocabulary.encode([sentence.text])[0]), END)
        if not options.end:
            pieces = tuple(piece for piece in pieces if piece != END)
        ranks = ranks_by_frequency(pieces, counts)
        before, after = overlaps(ranks, ranks, pieces, types=not options.tokens)
        past.append(before)
        future.append(after)
    return past, future


def remainder_table(request: Request, options: UnderTranslationOptions) -> pd.DataFrame:
    """Remaining FUTURE mass at the end of each translation, sorted by the column `by`, largest first.

    Columns: sentence, system, words, left, mean, most, word, source, translation.
    """
    import pandas as pd

    from analyses.past_future import remainders

    by, target = options.by, options.target
    tables = []
    for run in drawable_runs(request):
        sentences, translations = sentences_of(request, options, run, target), run.translations(request.test)
        table = remainders([sentence.mass for sentence in sentences], [sentence.source_words for sentence in sentences])
        words = [sentences[row].source[word] if word >= 0 else "" for row, word in enumerate(table["word"])]
        rows = [sentence.row for sentence in sentences]
        written = translations.hypotheses if target == "own" else references_of(run, request.test)
        tables.append(
            table.assign(
                word=words,
                sentence=rows,
                system=short_names(request.runs)[run.name],
                source=[translations.test_set.sources[row] for row in rows],
                translation=[written[row] for row in rows],
            )
        )
    ranked = pd.concat(tables, ignore_index=True).sort_values([by, "sentence"], ascending=[False, True], kind="stable")
    return ranked[["sentence", "system", "words", "left", "mean", "most", "word", "source", "translation"]].dropna()


def _aligner_comparison(request: Request, options: UnderTranslationOptions, run: Run, table: pd.DataFrame) -> str:
    """Sentence with the AUC of the remaining mass as a predictor of words that are missing by the frozen aligner."""
    from analyses.past_future_gold import area_under_curve
    from workbench.evaluation.adequacy import aligner_of, by_sentence

    if options.target != "own":
        raise RunError("aligned: the aligner is asked about a run's own translations; leave out target")
    aligner, origin = aligner_of([run], request.test)
    missed = by_sentence([run], request.test, aligner)[run.name]["missed"].iloc[table["sentence"]].to_numpy() > 0
    area, by_length = (area_under_curve(table[column].to_numpy(), missed) for column in (options.by, "words"))
    auc_text = f"AUC of what is left as a sign of that: {area:.3f}, of the length of the source alone: {by_length:.3f}"
    result = auc_text if missed.any() and not missed.all() else "no AUC"
    return (
        f" By the frozen aligner ({origin}) {missed.sum()} of them leave out a word that the reference covers; "
        f"{result}."
    )


@figure("under-translation", scope="test_set", options=UnderTranslationOptions)
def _under_translation(request: Request, options: UnderTranslationOptions) -> Figure:
    """The sentences with most FUTURE mass left at the end of the translation."""
    from workbench.views.past_future.corpus_plots import under_translation

    runs = drawable_runs(request)
    table = remainder_table(replace(request, runs=tuple(runs[:1])), options)
    by, target = options.by, options.target
    caption = (
        f"FUTURE mass of source words at the last step of {TARGETS[target]}, where </s> is predicted; the paper claims "
        f"that none is left. The {min(MOST_BARS, len(table))} of {len(table)} sentences with most by {RANKED[by]}; "
        f"over all sentences {table['mean'].mean():.3f} for each word."
    )
    if options.aligned:
        caption += _aligner_comparison(request, options, runs[0], table)
    figure = under_translation(table.head(MOST_BARS), by, caption)
    return of_the_first(figure, replace(request, runs=tuple(runs)))
