"""Ratings as tables: CSV out and in, forms to be filled in elsewhere, and the results of a study with names of systems.

Unblinds where it says so (`export`, `results`); a `form` has letters only. The measures are `analyses.ratings`.
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
    lettered,
    marks,
    places,
    read_row,
    read_table,
    save,
)
from workbench.store.runs import RunError

FORM = ("rater", "sentence", "letter", "source", "translation", "quality", "over", "under")


@dataclass(frozen=True)
class Results:
    """The tables of `analyses.ratings` for one study, and what they are counted over, in words."""

    intervals: pd.DataFrame
    differences: pd.DataFrame | None
    agreement: pd.DataFrame
    counted: str


def results(study: Study, baseline: str | None = None, samples: int = 1000) -> Results:
    """What was found, by system; differences where there are two systems. Raises RunError where nothing was rated."""
    counted = export(study)
    counts = {side: [len(marked.split()) for marked in counted[side]] for side in ("over", "under")}
    found = ratings.whole(counted.assign(**counts), study.systems)
    if found.empty:
        raise RunError(f"{study.name}: nobody has rated all translations of a sentence yet")
    base = baseline or study.systems[0]
    if base not in study.systems:
        raise RunError(f"{study.name}: there is no system {base!r}, only: {', '.join(study.systems)}")
    alone = len(study.systems) == 1
    left_out = len(counted) - len(found)
    raters = found["rater"].nunique()
    said = (
        f"{raters} rater{'s' if raters > 1 else ''}, {found['sentence'].nunique()} of {len(study.items)} sentences of "
        f"{study.test}, {len(found)} ratings"
        + (f"; {left_out} left out, of sentences with a translation that the rater has not rated" if left_out else "")
    )
    return Results(
        ratings.intervals(found, samples),
        None if alone else ratings.differences(found, base, samples),
        ratings.agreement(found),
        said,
    )


def export(study: Study) -> pd.DataFrame:
    """A row a rater, sentence and system: rater, sentence, system, quality, over, under, words.

    over, under: the places of the source words (what stands between white space, from 0), blanks between; words: how
    many the source has.
    """
    rows = [
        (rater, sentence, system, mark.quality, places(mark.over), places(mark.under), len(study.item(sentence).words))
        for rater in study.raters
        for sentence, by_letter in marks(study, rater).items()
        for letter, mark in by_letter.items()
        for system in study.under_letter(rater, sentence, letter)
    ]
    return pd.DataFrame(rows, columns=list(ratings.COLUMNS))


def form(study: Study, rater: str) -> pd.DataFrame:
    """What a rater has to fill in elsewhere, without names of systems: FORM, with what is rated already."""
    study = enter(study, rater)
    given = marks(study, rater)
    rows = []
    for item in study.items:
        for letter, text in study.shown(rater, item).items():
            mark = given.get(item.sentence, {}).get(letter)
            rated = (mark.quality, places(mark.over), places(mark.under)) if mark else ("", "", "")
            rows.append((rater, item.sentence, letter, item.source, text, *rated))
    return pd.DataFrame(rows, columns=list(FORM))


def bring_in(study: Study, file: Path | BinaryIO, name: str) -> dict[str, int]:
    """Take in the ratings of a CSV file called `name`, all or none; returns how many there were of each rater.

    Columns, as `form` or `export` write them: rater, sentence, letter or system, quality (empty: none), over, under.
    Raises RunError that names file and line.
    """
    rows = read_table(file, name, ("rater", "sentence", "quality", "over", "under"))
    if rows and not {"letter", "system"} & set(rows[0]):
        raise RunError(f"{name}: lacks the column 'letter' (of a form) or 'system'; it has {', '.join(rows[0])}")
    filled = [(line, row) for line, row in enumerate(rows, start=2) if row["quality"].strip()]
    given: dict[str, dict[int, dict[str, Mark]]] = {}
    entered = study  # with the raters of the file; nothing is written before all of it fits
    for line, row in filled:
        where, rater = f"{name}:{line}", row["rater"]
        check_name(f"{where}: the rater", rater)
        entered = lettered(entered, rater)
        item, mark = read_row(study, row, where)
        letter = row["letter"] if "letter" in row else _letter_of(entered, row, item, where)
        entered.under_letter(rater, item.sentence, letter)
        if given.setdefault(rater, {}).setdefault(item.sentence, {}).setdefault(letter, mark) != mark:
            raise RunError(
                f"{where}: {rater} rates the same translation of sentence {item.sentence} a second time, otherwise; "
                "keep one of the rows"
            )
    for rater, own in given.items():
        save(enter(study, rater), rater, own)
    return {rater: sum(map(len, own.values())) for rater, own in given.items()}


def _letter_of(study: Study, row: Mapping[str, str], item: Item, where: str) -> str:
    for letter in study.shown(row["rater"], item):
        if row["system"] in study.under_letter(row["rater"], item.sentence, letter):
            return letter
    raise RunError(f"{where}: there is no system {row['system']!r} in this study, only: {', '.join(study.systems)}")
