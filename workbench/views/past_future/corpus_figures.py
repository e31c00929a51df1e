"""Drawings of PAST and FUTURE over a test set: flips, overlap rates, what is left untranslated (Zheng 2019).

Options of all: `sentences` (the first so many, or all); of those that can be of either, `target` (own, reference: the
reference unless told, where there is one). Runs that separate no PAST and FUTURE are left out.
What is computed is kept beside the runs (`workbench.views.past_future.measure`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.evaluation.forced_decoding import TARGETS, references_of
from workbench.evaluation.gold_alignments import Truth, has_truth, truths
from workbench.figures.options import choice, is_on, sentence_count
from workbench.figures.registry import drawing
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future import measure as runs_of
from workbench.views.past_future.figures import able
from workbench.views.past_future.measure import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure

SENTENCES = 200  # how many unless told
MOST_BARS = 20
RANKED = {"left": "all words together", "mean": "mean of a word", "most": "the word with most"}


def target_of(request: Request, run: Run) -> str:
    """Which translations are forced: the references, where there are any and nothing else is asked for."""
    usual = "own" if run.translations(request.test).test_set.references is None else "reference"
    return str(request.options.get("target", usual))


def sentences_of(request: Request, run: Run, target: str) -> list[Sentence]:
    """The sentences that a request is about, forced through a run."""
    return runs_of.measured(run, request.test, target, sentence_count(request, SENTENCES))


def _on(request: Request, run: Run, target: str, sentences: int) -> str:
    whose = "its own translations" if target == "own" else "references"
    return f"{short_names(request.runs)[run.name]}: {sentences} sentence{'s' * (sentences > 1)}, {whose}"


@drawing("flip-times", options=("sentences", "target", "links"))
def _flip_times(request: Request) -> Figure:
    """Options besides: links (truth, attention; the truth unless told, where references are forced that have it)."""
    import pandas as pd

    from analyses.past_future import distribution, flip_table
    from workbench.views.past_future.corpus_plots import flip_times

    tables, said = [], []
    for run in able(request):
        target = target_of(request, run)
        found, linked = sentences_of(request, run, target), _linked(request, run, target)
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


@drawing("past-future-course", options=("sentences", "target"))
def _course(request: Request) -> Figure:
    import pandas as pd

    from analyses.past_future import course
    from workbench.views.past_future.corpus_plots import past_future_course

    tables, said = [], []
    for run in able(request):
        target = target_of(request, run)
        found = sentences_of(request, run, target)
        left = course([one.mass[:, : one.source_words] for one in found])
        tables.append(left.assign(system=short_names(request.runs)[run.name]))
        said.append(_on(request, run, target, len(found)))
    caption = (
        "Mean mass of a source word over the relative position, in tenths, with 95% bootstrap intervals over "
        f"sentences. The paper says that PAST rises and FUTURE falls to around zero. {'; '.join(said)}."
    )
    return past_future_course(pd.concat(tables, ignore_index=True), caption)


def _linked(request: Request, run: Run, target: str) -> list[Truth] | None:
    """The truth of every sentence; None where attention is to say what belongs together."""
    there = target == "reference" and has_truth(run, request.test)
    asked = str(request.options.get("links", "truth" if there else "attention"))
    if asked not in ("truth", "attention"):
        raise RunError(f"links {asked!r}: choose truth or attention")
    if asked == "truth" and target != "reference":
        raise RunError("the truth has links of references; force them: target=reference")
    return truths(run, request.test) if asked == "truth" else None


@drawing("overlap", options=("sentences", "target", "printed", "tokens", "end"))
def _overlap(request: Request) -> Figure:
    """Options besides: printed (also what the paper says), tokens (a repeated piece counts each time), end (is </s> one
    of them? it is, unless told)."""
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
    types, end = not is_on(request, "tokens"), is_on(request, "end", usual=True)
    tables, means, said = [], [], []
    for run in with_bags:
        target, name = target_of(request, run), short_names(request.runs)[run.name]
        found = sentences_of(request, run, target)
        past, future = ([one.overlap(side, types, end) for one in found] for side in ("past", "future"))
        tables.append(along({"past": past, "future": future}, list(map(len, past))).assign(system=name))
        means.append(rates(past, future).assign(system=name))
        said.append(_on(request, run, target, len(found)))
    counted = "distinct pieces" if types else "pieces, repeated ones each time"
    (row,) = library()["zheng-2019"].table("section-4.3").rows
    printed = {side: float(value) for side, value in row.values.items()}
    beside = is_on(request, "printed", usual=True)
    caption = (
        "How much of the words up to a step (PAST) is among the 5 t most probable of the bag's prediction, and of the "
        f"words after it (FUTURE) among 5 (T − t); {counted}, "
        f"{'</s> among them' if end else 'without </s>'}; over relative position in tenths, "
        "95% bootstrap intervals over sentences; at the right the means of sentences"
        f"{', hollow: reported by Zheng et al. 2019 (other data)' if beside else ''}. {'; '.join(said)}."
    )
    return overlap_rates(
        pd.concat(tables, ignore_index=True), pd.concat(means, ignore_index=True), printed if beside else None, caption
    )


def remainder_table(request: Request) -> pd.DataFrame:
    """What of FUTURE is left at the end of each own translation: sentence, system, words, left, mean, most, word,
    source, translation; most of `by` (left, mean, most) first."""
    import pandas as pd

    from analyses.past_future import remainders

    by = choice(request, "by", RANKED)
    tables = []
    for run in able(request):
        target = str(request.options.get("target", "own"))
        found, opened = sentences_of(request, run, target), run.translations(request.test)
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


def _beside_aligner(request: Request, run: Run, table: pd.DataFrame, by: str) -> str:
    """How well what is left finds the own translations that leave out a word by the frozen aligner, in a sentence."""
    from analyses.past_future_gold import area_under_curve
    from workbench.evaluation.adequacy import aligner_of, by_sentence

    if str(request.options.get("target", "own")) != "own":
        raise RunError("aligned: the aligner is asked about a run's own translations; leave out target")
    aligner, origin = aligner_of([run], request.test)
    missed = by_sentence([run], request.test, aligner)[run.name]["missed"].iloc[table["sentence"]].to_numpy() > 0
    area, by_length = (area_under_curve(table[column].to_numpy(), missed) for column in (by, "words"))
    said = f"AUC of what is left as a sign of that: {area:.3f}, of the length of the source alone: {by_length:.3f}"
    found = said if missed.any() and not missed.all() else "no AUC"
    return (
        f" By the frozen aligner ({origin}) {missed.sum()} of them leave out a word that the reference covers; {found}."
    )


@drawing("under-translation", options=("sentences", "target", "by", "aligned"))
def _under_translation(request: Request) -> Figure:
    """Options besides: by (left, mean, most: what ranks the sentences), aligned (ask the frozen aligner too)."""
    from workbench.views.past_future.corpus_plots import under_translation

    runs = able(request)
    table = remainder_table(replace(request, runs=tuple(runs[:1])))
    by, target = str(request.options.get("by", "left")), str(request.options.get("target", "own"))
    caption = (
        f"FUTURE mass of source words at the last step of {TARGETS[target]}, where </s> is predicted; the paper claims "
        f"that none is left. The {min(MOST_BARS, len(table))} of {len(table)} sentences with most by {RANKED[by]}; "
        f"over all sentences {table['mean'].mean():.3f} for each word."
    )
    if is_on(request, "aligned"):
        caption += _beside_aligner(request, runs[0], table, by)
    figure = under_translation(table.head(MOST_BARS), by, caption)
    return of_the_first(figure, replace(request, runs=tuple(runs)))
