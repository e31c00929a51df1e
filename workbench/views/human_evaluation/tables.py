"""Ratings as tables: CSV export and import, forms for raters, and results of a study by system.

`export` and `results` name systems; a `form` has letters only. The measures are in `analyses.ratings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from analyses import ratings
from workbench.store.rating_studies import (
    Item,
    Mark,
    Study,
    check_name,
    enter,
    marks,
    positions_text,
    read_row,
    read_table,
    save,
    with_letters,
)
from workbench.store.runs import RunError

FORM = ("rater", "sentence", "letter", "source", "translation", "quality", "over", "under")


@dataclass(frozen=True)
class Results:
    """Tables of `analyses.ratings` for one study, and a description of the counted ratings."""

    intervals: pd.DataFrame
    differences: pd.DataFrame | None
    agreement: pd.DataFrame
    counted: str


def results(study: Study, baseline: str | None = None, samples: int = 1000) -> Results:
    """Results by system, with differences for two or more systems; raises RunError without ratings."""
    counted = export(study)
    counts = {side: [len(marked.split()) for marked in counted[side]] for side in ("over", "under")}
    rated = ratings.whole(counted.assign(**counts), study.systems)
    if rated.empty:
        raise RunError(f"{study.name}: nobody has rated all translations of a sentence yet")
    base = baseline or study.systems[0]
    if base not in study.systems:
        raise RunError(f"{study.name}: there is no system {base!r}, only: {', '.join(study.systems)}")
    single_system = len(study.systems) == 1
    left_out = len(counted) - len(rated)
    raters = rated["rater"].nunique()
    counted_text = (
        f"{raters} rater{'s' if raters > 1 else ''}, {rated['sentence'].nunique()} of {len(study.items)} sentences of "
        f"{study.test}, {len(rated)} ratings"
        + (f"; {left_out} left out, of sentences with a translation that the rater has not rated" if left_out else "")
    )
    return Results(
        ratings.intervals(rated, samples),
        None if single_system else ratings.differences(rated, base, samples),
        ratings.agreement(rated),
        counted_text,
    )


def export(study: Study) -> pd.DataFrame:
    """Ratings of a study, one row for each rater, sentence and system.

    Columns: rater, sentence, system, quality, over, under, words. over, under: indices of whitespace words of the
    source, from 0, separated by blanks; words: their number in the source.
    """
    rows = [
        (
            rater,
            sentence,
            system,
            mark.quality,
            positions_text(mark.over),
            positions_text(mark.under),
            len(study.item(sentence).words),
        )
        for rater in study.raters
        for sentence, by_letter in marks(study, rater).items()
        for letter, mark in by_letter.items()
        for system in study.systems_of_letter(rater, sentence, letter)
    ]
    return pd.DataFrame(rows, columns=list(ratings.COLUMNS))


def form(study: Study, rater: str) -> pd.DataFrame:
    """Form for a rater (columns FORM), without names of systems, with existing ratings filled in."""
    study = enter(study, rater)
    marks_by_sentence = marks(study, rater)
    rows = []
    for item in study.items:
        for letter, text in study.translations_by_letter(rater, item).items():
            mark = marks_by_sentence.get(item.sentence, {}).get(letter)
            fields = (mark.quality, positions_text(mark.over), positions_text(mark.under)) if mark else ("", "", "")
            rows.append((rater, item.sentence, letter, item.source, text, *fields))
    return pd.DataFrame(rows, columns=list(FORM))


def bring_in(study: Study, file: Path | BinaryIO, name: str) -> dict[str, int]:
    """Import the ratings of a CSV file called `name`, all or none; returns the number of ratings by rater.

    Columns of `form` or `export`: rater, sentence, letter or system, quality (empty: none), over, under. Raises
    RunError with file and line.
    """
    rows = read_table(file, name, ("rater", "sentence", "quality", "over", "under"))
    if rows and not {"letter", "system"} & set(rows[0]):
        raise RunError(f"{name}: lacks the column 'letter' (of a form) or 'system'; it has {', '.join(rows[0])}")
    filled = [(line, row) for line, row in enumerate(rows, start=2) if row["quality"].strip()]
    by_rater: dict[str, dict[int, dict[str, Mark]]] = {}
    entered = study  # with the raters of the file; nothing is written until all rows are valid
    for line, row in filled:
        where, rater = f"{name}:{line}", row["rater"]
        check_name(f"{where}: the rater", rater)
        entered = with_letters(entered, rater)
        item, mark = read_row(study, row, where)
        letter = row["letter"] if "letter" in row else _letter_of(entered, row, item, where)
        entered.systems_of_letter(rater, item.sentence, letter)
        if by_rater.setdefault(rater, {}).setdefault(item.sentence, {}).setdefault(letter, mark) != mark:
            raise RunError(
                f"{where}: {rater} rates the same translation of sentence {item.sentence} a second time, otherwise; "
                "keep one of the rows"
            )
    for rater, marks_of_rater in by_rater.items():
        save(enter(study, rater), rater, marks_of_rater)
    return {rater: sum(map(len, marks_of_rater.values())) for rater, marks_of_rater in by_rater.items()}


def _letter_of(study: Study, row: Mapping[str, str], item: Item, where: str) -> str:
    for letter in study.translations_by_letter(row["rater"], item):
        if row["system"] in study.systems_of_letter(row["rater"], item.sentence, letter):
            return letter
    raise RunError(f"{where}: there is no system {row['system']!r} in this study, only: {', '.join(study.systems)}")
