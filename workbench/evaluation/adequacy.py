"""Adequacy of runs by one frozen aligner: measures by sentence and test set, and the reward in training.

The aligner is trained on the training text of the first run that has some, else on the test set and its references,
and stored next to the runs; the file of another aligner can be given instead. Never imports torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, FiniteFloat

from workbench.evaluation.result_cache import ResultCache, of_translations
from workbench.evaluation.scoring import references
from workbench.evaluation.translate import prepared_of
from workbench.store.runs import ALIGNERS, Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.aligner import Aligner
    from analyses.alignment import Link
    from core_models.training.reinforce import Reward
    from workbench.store.translations import Translations

TOWARDS = ("first", "union")  # of several references: only the first counts, or what any of them covers
MAX_SENTENCES = 50_000  # of a training text: the first ones


class MeasureScore(BaseModel):
    """One measure of a run's translations over n sentences, with its 95 % bootstrap interval."""

    measure: str
    score: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    n: int


class Adequacy(BaseModel):
    """All measures by one aligner (its digest), towards one of TOWARDS."""

    aligner: str
    towards: str = TOWARDS[0]
    measures: list[MeasureScore]


ADEQUACY = ResultCache("adequacy/{}.json", Adequacy.model_dump, Adequacy.model_validate)
_COUNTS = ("words", "covered", "missed", "under", "repeated", "over")


def _as_table(arrays: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: arrays[name] for name in _COUNTS})


SENTENCE_COUNTS: ResultCache[pd.DataFrame] = ResultCache(
    "adequacy/sentences-{}.npz", lambda table: {name: table[name].to_numpy() for name in _COUNTS}, _as_table
)


@dataclass(frozen=True)
class _Text:
    """The training text of an aligner: a name for its file, its origin in words, and both sides, read lazily."""

    key: str
    origin: str
    read: Callable[[], tuple[list[str], list[str]]]


def aligner_of(runs: Sequence[Run], test: str, file: str | Path | None = None) -> tuple[Aligner, str]:
    """The frozen aligner for runs, trained and saved if there is none yet, and a text on its origin."""
    from analyses import aligner

    if file is not None:
        if not Path(file).is_file():
            raise RunError(f"{file}: no such file; train an aligner: workbench data train-aligner --out {file}")
        try:
            return aligner.load(file), f"read from {Path(file).name}"
        except ValueError as error:
            raise RunError(str(error)) from None
    text = _training_text(runs, test)
    path = runs[0].folder.parent / ALIGNERS / f"{text.key}.npz"
    if path.is_file():
        with contextlib.suppress(ValueError):  # damaged: trained and written again
            return aligner.load(path), text.origin
    trained = train_aligner(*text.read())
    with contextlib.suppress(OSError):  # read-only runs: trained again next time
        path.parent.mkdir(exist_ok=True)
        trained.save(path)
    return trained, text.origin


def train_aligner(sources: Sequence[str], targets: Sequence[str], iterations: int = 5) -> Aligner:
    """Train an aligner on parallel lines; raises RunError if no sentence has words on both sides."""
    from analyses import aligner

    source, target = (list(map(aligner.words, lines)) for lines in (sources, targets))
    try:
        return aligner.train(source, target, iterations)
    except ValueError as error:
        raise RunError(str(error)) from None


def _training_text(runs: Sequence[Run], test: str) -> _Text:
    """The training text of the first run that has some, else the test set with its references."""
    for run in runs:
        with contextlib.suppress(RunError):
            return _prepared_text(run)
    from analyses.text_checks import digest

    translations_of = {run.name: run.translations(test) for run in runs}
    reference_lists = references(translations_of)
    sources = next(iter(translations_of.values())).test_set.sources * len(reference_lists)
    targets = [line for lines in reference_lists for line in lines]
    return _Text(
        digest(sources, targets), f"trained on {len(targets)} references of the test set", lambda: (sources, targets)
    )


def _prepared_text(run: Run) -> _Text:
    prepared = prepared_of(run)
    text = prepared.split("train")
    rows = range(min(len(text), MAX_SENTENCES))

    def read() -> tuple[list[str], list[str]]:
        return [text.source_text(row) for row in rows], [text.target_text(row) for row in rows]

    return _Text(prepared.digest[:12], f"trained on {len(rows)} sentences of the training text", read)


def by_sentence(runs: Sequence[Run], test: str, aligner: Aligner, towards: str = TOWARDS[0]) -> dict[str, pd.DataFrame]:
    """`analyses.adequacy.by_sentence` of each run, cached in it, against one of TOWARDS; RunError for another."""
    from analyses import adequacy
    from analyses.aligner import words

    if towards not in TOWARDS:
        raise RunError(f"towards {towards!r}: choose {' or '.join(TOWARDS)}")
    translations_of = {run.name: run.translations(test) for run in runs}
    reference_lists = references(translations_of)[: 1 if towards == "first" else None]
    reference_words = [list(map(words, lines)) for lines in reference_lists]
    source = list(map(words, next(iter(translations_of.values())).test_set.sources))

    @cache
    def reference_alignments() -> list[list[set[Link]]]:
        return [aligner.align_all(source, lines) for lines in reference_words]

    def count(translations: Translations) -> pd.DataFrame:
        hypotheses = list(map(words, translations.hypotheses))
        links = aligner.align_all(source, hypotheses)
        return adequacy.by_sentence(reference_alignments(), links, source, reference_words, hypotheses)

    tables = {}
    for run in runs:
        inputs = {**of_translations(run, test), "aligner": aligner.digest, "towards": towards}
        tables[run.name] = SENTENCE_COUNTS.cached(run, inputs, partial(count, translations_of[run.name]))
    return tables


def reference_text(count: int, towards: str = TOWARDS[0]) -> str:
    """Which of `count` references cover source words, as a noun phrase for messages; towards: one of TOWARDS."""
    if count < 2:
        return "the reference"
    return f"the first of {count} references" if towards == "first" else f"any of the {count} references"


def reward(aligner: Aligner) -> Reward:
    """The reward of training towards adequacy: the coverage difference ratio of each single sentence.

    A repeated word costs nothing in this reward; the likelihood term of the loss works against repetition.
    """
    from analyses.adequacy import coverage, covered_share
    from analyses.aligner import words

    @lru_cache(MAX_SENTENCES)
    def covered(source: str, target: str) -> frozenset[int]:
        return frozenset(coverage(aligner.align(words(source), words(target))))

    def rewards(sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        lines = zip(sources, hypotheses, references, strict=True)
        return [
            covered_share(covered(source, reference), covered(source, hypothesis))
            for source, hypothesis, reference in lines
        ]

    return rewards


def adequacy_table(
    runs: Sequence[Run], test: str, aligner: Aligner, samples: int = 1000, towards: str = TOWARDS[0]
) -> pd.DataFrame:
    """Every measure of every run, cached in each: system, measure, score, low, high (95% bootstrap), n (sentences)."""
    import pandas as pd

    from analyses import adequacy

    inputs = {run.name: of_translations(run, test) for run in runs}
    sentences, tables = by_sentence(runs, test, aligner, towards), []
    for run in runs:
        measures = adequacy.intervals(sentences[run.name], samples).assign(n=len(sentences[run.name]))
        with contextlib.suppress(ValueError):  # a measure of no words is NaN, which is not stored
            result = Adequacy(aligner=aligner.digest, towards=towards, measures=measures.to_dict("records"))
            ADEQUACY.save(run, inputs[run.name], result, test)
        tables.append(measures.assign(system=run.name))
    table = pd.concat(tables, ignore_index=True)
    return table[["system", "measure", "score", "low", "high", "n"]]


def sentences_table(runs: Sequence[Run], test: str, aligner: Aligner, towards: str = TOWARDS[0]) -> pd.DataFrame:
    """A row per sentence and system with omissions or repetitions, those with most of both first.

    Columns: sentence, system, missed, repeated (source words), source, translation.
    """
    import pandas as pd

    translations_of = {run.name: run.translations(test) for run in runs}
    tables = []
    for name, counts in by_sentence(runs, test, aligner, towards).items():
        counts = counts.assign(
            sentence=range(len(counts)),
            system=name,
            source=translations_of[name].test_set.sources,
            translation=translations_of[name].hypotheses,
        )
        tables.append(counts[(counts["missed"] > 0) | (counts["repeated"] > 0)])
    table = pd.concat(tables, ignore_index=True)
    table = table.assign(both=table["missed"] + table["repeated"])
    table = table.sort_values(["both", "sentence"], ascending=[False, True], kind="stable", ignore_index=True)
    return table[["sentence", "system", "missed", "repeated", "source", "translation"]]
