"""Drawings of PAST and FUTURE over a test set: flips, overlap rates, what is left untranslated (Zheng 2019).

Runs that separate no PAST and FUTURE are left out. What is computed is kept beside the runs (`measure`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.evaluation.forced_decoding import TARGETS, references_of
from workbench.evaluation.gold_alignments import Truth, has_truth, truths
from workbench.figures.options import CorpusOptions, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future import measure as runs_of
from workbench.views.past_future.figures import able
from workbench.views.past_future.measure import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure

MOST_BARS = 20
RANKED = {"left": "all words together", "mean": "mean of a word", "most": "the word with most"}


class TargetOptions(CorpusOptions):
    """Which translations are forced, of how many sentences of a test set."""

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
    """Which translations are forced: the references, where there are any and nothing else is asked for."""
    usual = "own" if run.translations(request.test).test_set.references is None else "reference"
    return options.target or usual


def sentences_of(request: Request, options: CorpusOptions, run: Run, target: str) -> list[Sentence]:
    """The sentences that a request is about, forced through a run."""
    return runs_of.measured(run, request.test, target, number(options.sentences))


def _on(request: Request, run: Run, target: str, sentences: int) -> str:
    whose = "its own translations" if target == "own" else "references"
    return f"{short_names(request.runs)[run.name]}: {sentences} sentence{'s' * (sentences > 1)}, {whose}"


@figure("flip-times", scope="test_set", options=FlipTimesOptions)
def _flip_times(request: Request, options: FlipTimesOptions) -> Figure:
    """How many steps after its last counterpart a source word moves from FUTURE to PAST."""
    import pandas as pd

    from analyses.past_future import distribution, flip_table
    from workbench.views.past_future.corpus_plots import flip_times

    tables, said = [], []
    for run in able(request):
        target = target_of(request, options, run)
        found, linked = sentences_of(request, options, run, target), _linked(request, options, run, target)
        kept = [one for one in found if linked is None or linked[one.row].fits(*one.words)]
        if not kept:
            raise RunError(f"{run.name}: its pieces join to other words than the truth counts, in every sentence")
        links = [one.attended() if linked is None else linked[one.row].links for one in kept]
        flips = flip_table([one.mass for one in kept], links)
        name = short_names(request.runs)[run.name]
        tables.append(distribution(flips["distance"].to_numpy()).assign(system=name))
        by = "the word attended to most" if linked is None else "true links"
        said.append(f"{_on(request, run, target, len(kept))}, by {by}")
    caption = (
        "From the step at which the last counterpart of a source word is written to the first from which PAST stays "
        "above FUTURE; 0: it is past as its counterpart is predicted, 1: one step later. Words without counterpart are "
        f"left out. {'; '.join(said)}."
    )
    return flip_times(pd.concat(tables, ignore_index=True), styles(request), caption)


@figure("past-future-course", scope="test_set", options=TargetOptions)
def _course(request: Request, options: TargetOptions) -> Figure:
    """Mean mass of a source word in each group over the relative position in the translation."""
    import pandas as pd

    from analyses.past_future import course
    from workbench.views.past_future.corpus_plots import past_future_course

    tables, said = [], []
    for run in able(request):
        target = target_of(request, options, run)
        found = sentences_of(request, options, run, target)
        left = course([one.mass[:, : one.source_words] for one in found])
        tables.append(left.assign(system=short_names(request.runs)[run.name]))
        said.append(_on(request, run, target, len(found)))
    caption = (
        "Mean mass of a source word over the relative position, in tenths, with 95% bootstrap intervals over "
        f"sentences. The paper says that PAST rises and FUTURE falls to around zero. {'; '.join(said)}."
    )
    return past_future_course(pd.concat(tables, ignore_index=True), caption)


def _linked(request: Request, options: FlipTimesOptions, run: Run, target: str) -> list[Truth] | None:
    """The truth of every sentence; None where attention is to say what belongs together."""
    there = target == "reference" and has_truth(run, request.test)
    asked = options.links or ("truth" if there else "attention")
    if asked == "truth" and target != "reference":
        raise RunError("the truth has links of references; force them: target=reference")
    return truths(run, request.test) if asked == "truth" else None


@figure("overlap", scope="test_set", options=OverlapOptions)
def _overlap(request: Request, options: OverlapOptions) -> Figure:
    """How many of the words written and to come the predicted bags of words hold."""
    import pandas as pd

    from analyses.overlap import rates
    from analyses.past_future import along
    from workbench.papers.load import library
    from workbench.views.past_future.corpus_plots import overlap_rates

    with_bags = [run for run in able(request) if runs_of.has_bags(run)]
    if not with_bags:
        raise RunError(
            "none of the runs predicts bags of words, which overlap rates are made of; choose gdr-bow or gdr-bow-bca"
        )
    types, end = not options.tokens, options.end
    tables, means, said = [], [], []
    for run in with_bags:
        target, name = target_of(request, options, run), short_names(request.runs)[run.name]
        found = sentences_of(request, options, run, target)
        past, future = ([one.overlap(side, types, end) for one in found] for side in ("past", "future"))
        tables.append(along({"past": past, "future": future}, list(map(len, past))).assign(system=name))
        means.append(rates(past, future).assign(system=name))
        said.append(_on(request, run, target, len(found)))
    counted = "distinct pieces" if types else "pieces, repeated ones each time"
    (row,) = library()["zheng-2019"].table("section-4.3").rows
    printed = {side: float(value) for side, value in row.values.items()}
    caption = (
        "How much of the words up to a step (PAST) is among the 5 t most probable of the bag's prediction, and of the "
        f"words after it (FUTURE) among 5 (T − t); {counted}, "
        f"{'</s> among them' if end else 'without </s>'}; over relative position in tenths, "
        "95% bootstrap intervals over sentences; at the right the means of sentences"
        f"{', hollow: reported by Zheng et al. 2019 (other data)' if options.printed else ''}. {'; '.join(said)}."
    )
    return overlap_rates(
        pd.concat(tables, ignore_index=True),
        pd.concat(means, ignore_index=True),
        printed if options.printed else None,
        caption,
    )


def remainder_table(request: Request, options: UnderTranslationOptions) -> pd.DataFrame:
    """What of FUTURE is left at the end of each own translation: sentence, system, words, left, mean, most, word,
    source, translation; most of `by` (left, mean, most) first."""
    import pandas as pd

    from analyses.past_future import remainders

    by, target = options.by, options.target
    tables = []
    for run in able(request):
        found, opened = sentences_of(request, options, run, target), run.translations(request.test)
        table = remainders([one.mass for one in found], [one.source_words for one in found])
        words = [found[row].source[word] if word >= 0 else "" for row, word in enumerate(table["word"])]
        rows = [one.row for one in found]
        written = opened.hypotheses if target == "own" else references_of(run, request.test)
        tables.append(
            table.assign(
                word=words,
                sentence=rows,
                system=short_names(request.runs)[run.name],
                source=[opened.test_set.sources[row] for row in rows],
                translation=[written[row] for row in rows],
            )
        )
    whole = pd.concat(tables, ignore_index=True).sort_values([by, "sentence"], ascending=[False, True], kind="stable")
    return whole[["sentence", "system", "words", "left", "mean", "most", "word", "source", "translation"]].dropna()


def _beside_aligner(request: Request, options: UnderTranslationOptions, run: Run, table: pd.DataFrame) -> str:
    """How well what is left finds the own translations that leave out a word by the frozen aligner, in a sentence."""
    from analyses.past_future_gold import area_under_curve
    from workbench.evaluation.adequacy import aligner_of, by_sentence

    if options.target != "own":
        raise RunError("aligned: the aligner is asked about a run's own translations; leave out target")
    aligner, origin = aligner_of([run], request.test)
    missed = by_sentence([run], request.test, aligner)[run.name]["missed"].iloc[table["sentence"]].to_numpy() > 0
    area, by_length = (area_under_curve(table[column].to_numpy(), missed) for column in (options.by, "words"))
    said = f"AUC of what is left as a sign of that: {area:.3f}, of the length of the source alone: {by_length:.3f}"
    found = said if missed.any() and not missed.all() else "no AUC"
    return (
        f" By the frozen aligner ({origin}) {missed.sum()} of them leave out a word that the reference covers; {found}."
    )


@figure("under-translation", scope="test_set", options=UnderTranslationOptions)
def _under_translation(request: Request, options: UnderTranslationOptions) -> Figure:
    """The sentences with most FUTURE mass left at the end of the translation."""
    from workbench.views.past_future.corpus_plots import under_translation

    runs = able(request)
    table = remainder_table(replace(request, runs=tuple(runs[:1])), options)
    by, target = options.by, options.target
    caption = (
        f"FUTURE mass of source words at the last step of {TARGETS[target]}, where </s> is predicted; the paper claims "
        f"that none is left. The {min(MOST_BARS, len(table))} of {len(table)} sentences with most by {RANKED[by]}; "
        f"over all sentences {table['mean'].mean():.3f} for each word."
    )
    if options.aligned:
        caption += _beside_aligner(request, options, runs[0], table)
    figure = under_translation(table.head(MOST_BARS), by, caption)
    return of_the_first(figure, replace(request, runs=tuple(runs)))
