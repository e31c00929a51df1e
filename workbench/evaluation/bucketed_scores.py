"""Scores of runs by bucket of the test set's sentences: length, frequency of words, labels from a file.

Collects lengths, frequencies, labels and statistics; `analyses.buckets` computes the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation import scoring
from workbench.evaluation.word_frequencies import COUNTED, of_training
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.buckets import Buckets
    from analyses.scores import Statistics
    from workbench.store.translations import Translations

LENGTHS = ("source", "reference", "output")
FREQUENCIES = ("source-frequency", "reference-frequency")
LABEL = "label"
METRIC_NAMES = {**scoring.METRIC_NAMES, "length-ratio": "Length ratio", "output-length": "Output length (words)"}
DOCUMENT = "document"


@dataclass(frozen=True)
class Grouping:
    """Assignment of sentences to buckets.

    measure: one of LENGTHS (words; output: the baseline's), one of FREQUENCIES (of the rarest word), or label.
    scheme: a preset's name, `width:10`, `quantiles:6`, or `frequency` (0, 1 to 4, 5 to 9, …). counts: text in which
    frequencies are counted, test or training. labels: a file of labels, or `document`; column: its column, else the
    first.
    """

    measure: str = "source"
    scheme: str = ""
    counts: str = "test"
    labels: str = ""
    column: str = ""


def tables(
    runs: Sequence[Run],
    test: str,
    grouping: Grouping = Grouping(),
    metric: str = "bleu",
    baseline: str | None = None,
    samples: int = 1000,
) -> tuple[pd.DataFrame, pd.DataFrame | None, str]:
    """Scores by bucket with intervals, paired differences to a baseline (None for a single run), a bucket description.

    Raises RunError for an impossible grouping.
    """
    from analyses import buckets

    opened = {run.name: run.translations(test) for run in runs}
    reference = scoring.references(opened)[0]
    base = next((run for run in runs if run.name == baseline), runs[0])
    grouped, description = _grouped(base, opened[base.name], reference, grouping)
    outputs = {name: _lengths(translations.hypotheses) for name, translations in opened.items()}
    expected = _lengths(reference)
    extracted: Mapping[str, Statistics]
    if metric in buckets.LENGTH_METRICS:
        extracted = {name: buckets.length_statistics(lengths, expected, metric) for name, lengths in outputs.items()}
    else:
        extracted = scoring.statistics_of_all(runs, opened, metric)
    table = buckets.scores(extracted, grouped, samples, extra=outputs, reference_lengths=expected, baseline=baseline)
    if len(runs) < 2:
        return table, None, description
    return table, buckets.paired_differences(extracted, grouped, base.name, samples), description


def _grouped(base: Run, opened: Translations, reference: list[str], grouping: Grouping) -> tuple[Buckets, str]:
    from analyses import buckets

    sides = {"source": opened.test_set.sources, "reference": reference, "output": opened.hypotheses}
    measure = LABEL if grouping.labels else grouping.measure
    if measure == LABEL:
        labels, label_name = _labels(opened, grouping)
        return buckets.by_label(labels), label_name
    if measure in FREQUENCIES:
        side = measure.removesuffix("-frequency")
        values, description = _rarest(base, side, sides[side], grouping.counts), f"frequency of the rarest {side} word"
    elif measure in LENGTHS:
        values, description = _lengths(sides[measure]), f"{measure} length (words)"
    else:
        raise RunError(f"there are no buckets of {measure!r}; choose {', '.join((*LENGTHS, *FREQUENCIES, LABEL))}")
    return by_scheme(values, grouping.scheme or ("frequency" if measure in FREQUENCIES else "tens")), description


def by_scheme(values: Sequence[int], scheme: str) -> Buckets:
    """Buckets of numbers by width:N, quantiles:N, frequency or a preset of `analyses.buckets`; raises RunError."""
    from analyses import buckets

    kind, _, value = scheme.partition(":")
    try:
        if kind == "width":
            return buckets.equal_width(values, float(value or 10))
        if kind == "quantiles":
            return buckets.quantiles(values, int(value or 6))
        return buckets.by_frequency(values) if kind == "frequency" else buckets.preset(values, kind)
    except ValueError as error:
        raise RunError(f"buckets {scheme!r}: {error}") from None


def _labels(opened: Translations, grouping: Grouping) -> tuple[list[str], str]:
    from workbench.store import segment_annotations

    if grouping.labels == DOCUMENT:
        if opened.test_set.documents is None:
            raise RunError(f"{opened.test} has no documents; give a file with a label a line")
        return opened.test_set.documents, DOCUMENT
    if not grouping.labels:
        raise RunError("buckets of labels need a file; name it: --option labels=FILE")
    annotations = segment_annotations.read(Path(grouping.labels), len(opened))
    column = grouping.column or annotations.columns[0]
    if column not in annotations:
        raise RunError(f"{grouping.labels} has no column {column!r}; it has {', '.join(annotations.columns)}")
    from pandas.api.types import is_float_dtype

    labels = annotations[column]
    if is_float_dtype(labels) and (labels.dropna() % 1 == 0).all():  # 1, 2, 3, of which one may be missing
        labels = labels.astype("Int64")
    return labels.astype("string").fillna("").tolist(), str(column)


def _rarest(base: Run, side: str, lines: list[str], counts: str) -> list[int]:
    from analyses.tokenization import tokenized
    from analyses.words import frequencies, rarest_word_frequency

    if counts not in COUNTED:
        raise RunError(f"words are not counted in {counts!r}; choose {' or '.join(COUNTED)}")
    words = tokenized(lines)
    return rarest_word_frequency(words, frequencies(words) if counts == "test" else of_training(base, side)).tolist()


def _lengths(lines: Sequence[str]) -> list[int]:
    return [len(line.split()) for line in lines]
