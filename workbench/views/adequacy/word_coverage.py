"""Exact over- and under-translation on the controlled corpus, cached in the runs' folders.

Counts source words without a counterpart in a translation, and words that it repeats too often. Possible translations
are learned from sentences generated with a separate seed and from the references of the test set. Does not import
torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workbench.evaluation.adequacy import adequacy_table, aligner_of
from workbench.evaluation.bucketed_scores import by_scheme
from workbench.evaluation.gold_alignments import Truth, has_truth, truth_of, truths
from workbench.evaluation.result_cache import ResultCache, of_translations
from workbench.evaluation.scoring import by_seed, references
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.buckets import Buckets
    from analyses.word_coverage import Forms, SentenceCoverage, ShareStatistics

WHOLE = "all lengths"
_DIFFERENCES = ["delta", "delta_low", "delta_high", "p_value"]
LESSONS, SEED = 3000, 977  # number of sample sentences for learning forms, and their seed


@lru_cache(maxsize=1)
def _sample_sentences() -> tuple[tuple[str, str, Truth], ...]:
    from core_models.text.controlled import generate

    text = generate(LESSONS, 1, 1, seed=SEED).train
    pairs = zip(text.sources, text.targets, text.truth, strict=True)
    return tuple((source, target, truth_of(source, target, record)) for source, target, record in pairs)


def forms_of(sources: Sequence[str], targets: Sequence[str], gold: Sequence[Truth]) -> Forms:
    """Possible translations of words, learned from sample sentences and from the references of a test set."""
    from analyses.word_coverage import Forms

    forms = Forms()
    for source, target, truth in (*_sample_sentences(), *zip(sources, targets, gold, strict=True)):
        forms.learn(source.split(), target.split(), truth.links)
    return forms


def by_sentence(run: Run, test: str) -> list[SentenceCoverage]:
    """Counts for every sentence of a run's translation; raises RunError if the test set has no truth."""
    return COUNTERPARTS.cached(run, of_translations(run, test), lambda: _count_sentences(run, test), test)


def _count_sentences(run: Run, test: str) -> list[SentenceCoverage]:
    from analyses.word_coverage import sentence_coverage

    translations, gold = run.translations(test), truths(run, test)
    sources, targets = translations.test_set.sources, translations.test_set.references or []
    forms = forms_of(sources, targets, gold)
    sentences = zip(sources, targets, gold, translations.hypotheses, strict=True)
    return [
        sentence_coverage(source.split(), reference.split(), truth.links, written.split(), forms)
        for source, reference, truth, written in sentences
    ]


_PLACES = ("left_out", "repeated", "foreign")


def _dump(sentences: Sequence[SentenceCoverage]) -> dict[str, Any]:
    return {
        "sentences": [
            {"wanted": sentence.linked, **{name: sorted(getattr(sentence, name)) for name in _PLACES}}
            for sentence in sentences
        ]
    }


def _parse(content: Mapping[str, Any]) -> list[SentenceCoverage]:
    from analyses.word_coverage import SentenceCoverage

    return [
        SentenceCoverage(int(record["wanted"]), *(frozenset(map(int, record[name])) for name in _PLACES))
        for record in content["sentences"]
    ]


COUNTERPARTS = ResultCache("counterparts/{}.json", _dump, _parse)


def store_counts(runs: Sequence[Run], test: str) -> None:
    """Store beside runs what the page Adequacy counts in a test set, if that has references."""
    if not runs[0].translations(test).test_set.references:
        return
    adequacy_table(runs, test, aligner_of(runs, test)[0])
    for run in runs:
        if has_truth(run, test):
            by_sentence(run, test)


def statistics(runs: Sequence[Run], test: str, measure: str) -> dict[str, ShareStatistics]:
    """Counts of one of `analyses.word_coverage.MEASURES`, by run name.

    Raises RunError, also for runs that translated different versions of the test set.
    """
    from analyses.word_coverage import MEASURES, shares

    references({run.name: run.translations(test) for run in runs})
    if measure not in MEASURES:
        raise RunError(f"measure {measure!r}: choose {' or '.join(MEASURES)}")
    return {run.name: shares(by_sentence(run, test))[measure] for run in runs}


def in_buckets(run: Run, test: str, scheme: str) -> Buckets:
    """Buckets of the sentences of a test set by source length in words; raises RunError for an unknown scheme."""
    return by_scheme([len(line.split()) for line in run.translations(test).test_set.sources], scheme)


def exact_table(runs: Sequence[Run], test: str, baseline: str, scheme: str = "short") -> pd.DataFrame:
    """Exact counts, one row for each measure, system and bucket of source length, the whole test set first.

    Columns: measure, system, bucket, n (sentences), percent, low, high (95% bootstrap), and differences to the
    baseline: delta, delta_low, delta_high, p_value.
    """
    import pandas as pd

    from analyses import buckets
    from analyses.word_coverage import MEASURES

    lengths = in_buckets(runs[0], test, scheme)
    all_lengths = buckets.Buckets((), 0 * lengths.numbers, (WHOLE,))
    tables = []
    for measure in MEASURES:
        counts = statistics(runs, test, measure)
        for groups in (all_lengths, lengths):
            scored = buckets.scores(counts, groups, baseline=baseline)
            if len(runs) > 1:
                differences = buckets.paired_differences(counts, groups, baseline)
                differences = differences.rename(columns={"low": "delta_low", "high": "delta_high"})
                scored = scored.merge(
                    differences[["system", "bucket", *_DIFFERENCES]], on=["system", "bucket"], how="left"
                )
            tables.append(scored[scored["n"] > 0].assign(measure=measure))
    table = pd.concat(tables, ignore_index=True).rename(columns={"score": "percent"})
    return table.reindex(columns=["measure", "system", "bucket", "n", "percent", "low", "high", *_DIFFERENCES])


def over_seeds_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """Exact counts over seeds (runs of a system), one row for each measure and system, compared with the first system.

    Columns: measure, system, n, seeds, percent (mean over seeds), spread, low, high, delta, delta_low, delta_high,
    p_value, form; intervals and p-values by `analyses.seeds`. Raises RunError if two runs of a system have the same
    seed.
    """
    import pandas as pd

    from analyses import seeds
    from analyses.word_coverage import MEASURES

    tables = []
    for measure in MEASURES:
        counts = by_seed(runs, statistics(runs, test, measure))
        tables.append(seeds.beside_baseline(counts, runs[0].system).assign(measure=measure))
    table = pd.concat(tables, ignore_index=True).rename(columns={"score": "percent"})
    return table[["measure", "system", "n", "seeds", "percent", "spread", "low", "high", *_DIFFERENCES, "form"]]
