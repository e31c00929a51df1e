"""Over- and under-translation on the controlled corpus, counted exactly: which source words of a translation have no
counterpart, and which words it writes too often. Kept beside each run. Never imports torch.

What can translate what is read off sentences drawn with a seed of their own and off the references of the test set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workbench.evaluation.gold_alignments import Truth, truth_of, truths
from workbench.evaluation.result_cache import ResultCache, of_translations
from workbench.evaluation.scoring import by_seed, references
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.buckets import Buckets
    from analyses.word_coverage import Counted, Forms, ShareStatistics

WHOLE = "all lengths"
_APART = ["delta", "delta_low", "delta_high", "p_value"]
LESSONS, SEED = 3000, 977  # sentences that forms are read off besides the references, and the seed they are drawn with


@lru_cache(maxsize=1)
def _lessons() -> tuple[tuple[str, str, Truth], ...]:
    from core_models.text.controlled import generate

    text = generate(LESSONS, 1, 1, seed=SEED).train
    pairs = zip(text.sources, text.targets, text.truth, strict=True)
    return tuple((source, target, truth_of(source, target, record)) for source, target, record in pairs)


def forms_of(sources: Sequence[str], targets: Sequence[str], known: Sequence[Truth]) -> Forms:
    """What translates what, by the lessons and by a test set's own references."""
    from analyses.word_coverage import Forms

    forms = Forms()
    for source, target, truth in (*_lessons(), *zip(sources, targets, known, strict=True)):
        forms.learn(source.split(), target.split(), truth.links)
    return forms


def by_sentence(run: Run, test: str) -> list[Counted]:
    """What became of every sentence in a run's own translation; raises RunError where the test set has no truth."""
    return COUNTERPARTS.cached(run, of_translations(run, test), lambda: _counted(run, test), test)


def _counted(run: Run, test: str) -> list[Counted]:
    from analyses.word_coverage import counted

    opened, known = run.translations(test), truths(run, test)
    sources, wanted = opened.test_set.sources, opened.test_set.references or []
    forms = forms_of(sources, wanted, known)
    every = zip(sources, wanted, known, opened.hypotheses, strict=True)
    return [
        counted(source.split(), reference.split(), truth.links, written.split(), forms)
        for source, reference, truth, written in every
    ]


_PLACES = ("left_out", "repeated", "foreign")


def _dump(sentences: Sequence[Counted]) -> dict[str, Any]:
    return {
        "sentences": [
            {"wanted": one.wanted, **{name: sorted(getattr(one, name)) for name in _PLACES}} for one in sentences
        ]
    }


def _parse(content: Mapping[str, Any]) -> list[Counted]:
    from analyses.word_coverage import Counted

    return [
        Counted(int(one["wanted"]), *(frozenset(map(int, one[name])) for name in _PLACES))
        for one in content["sentences"]
    ]


COUNTERPARTS = ResultCache("counterparts/{}.json", _dump, _parse)


def statistics(runs: Sequence[Run], test: str, measure: str) -> dict[str, ShareStatistics]:
    """The counts of one of `analyses.word_coverage.MEASURES`, of every run by its name. Raises RunError, also for runs
    that translated different versions of the test set."""
    from analyses.word_coverage import MEASURES, shares

    references({run.name: run.translations(test) for run in runs})
    if measure not in MEASURES:
        raise RunError(f"measure {measure!r}: choose {' or '.join(MEASURES)}")
    return {run.name: shares(by_sentence(run, test))[measure] for run in runs}


def in_buckets(run: Run, test: str, scheme: str) -> Buckets:
    """The sentences of a test set by source length in words; raises ValueError for an unknown scheme."""
    from analyses import buckets

    return buckets.preset([len(line.split()) for line in run.translations(test).test_set.sources], scheme)


def exact_table(runs: Sequence[Run], test: str, baseline: str, scheme: str = "short") -> pd.DataFrame:
    """A row a measure, system and bucket of source length, the whole test set first: measure, system, bucket, n
    (sentences), percent, low, high (95% bootstrap), and to the baseline delta, delta_low, delta_high, p_value."""
    import pandas as pd

    from analyses import buckets
    from analyses.word_coverage import MEASURES

    lengths = in_buckets(runs[0], test, scheme)
    whole = buckets.Buckets((), 0 * lengths.numbers, (WHOLE,))
    tables = []
    for measure in MEASURES:
        counts = statistics(runs, test, measure)
        for parts in (whole, lengths):
            scored = buckets.scores(counts, parts, baseline=baseline)
            if len(runs) > 1:
                apart = buckets.paired_differences(counts, parts, baseline)
                apart = apart.rename(columns={"low": "delta_low", "high": "delta_high"})
                scored = scored.merge(apart[["system", "bucket", *_APART]], on=["system", "bucket"], how="left")
            tables.append(scored[scored["n"] > 0].assign(measure=measure))
    table = pd.concat(tables, ignore_index=True).rename(columns={"score": "percent"})
    return table.reindex(columns=["measure", "system", "bucket", "n", "percent", "low", "high", *_APART])


def over_seeds_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """A row a measure and system, whose runs are its seeds, against the first run's system: measure, system, n, seeds,
    percent (mean over seeds), spread, low, high, delta, delta_low, delta_high, p_value, form; intervals and p-values as
    `analyses.seeds` makes them. Raises RunError where two runs of a system have the same seed."""
    import pandas as pd

    from analyses import seeds
    from analyses.word_coverage import MEASURES

    tables = []
    for measure in MEASURES:
        counts = by_seed(runs, statistics(runs, test, measure))
        tables.append(seeds.beside_baseline(counts, runs[0].system).assign(measure=measure))
    table = pd.concat(tables, ignore_index=True).rename(columns={"score": "percent"})
    return table[["measure", "system", "n", "seeds", "percent", "spread", "low", "high", *_APART, "form"]]
