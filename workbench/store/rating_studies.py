"""Studies of human ratings on disk: sentences, assignment of systems to letters by rater, ratings.

    RUNS/.ratings/NAME/{study.json, RATER.csv}

The study stores the rated texts, so that they stay the same when a run translates again. A rater's file names letters
only; study.json says which system a letter stands for. Identical outputs share one letter.
Knows files; `views.human_evaluation.tables` makes the tables of results and for export.
"""

from __future__ import annotations

import json
import os
import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pandas as pd
from filelock import FileLock

from analyses.ratings import QUALITIES
from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RESULT, read_json
from workbench.store import exhibits, read_only
from workbench.store.csv_cells import csv_text, read_cell
from workbench.store.runs import Run, RunError, folders_beside

FOLDER, STUDY = ".ratings", "study.json"
_NAME = re.compile(r"\w[\w+-]*")
_COLUMNS = ("sentence", "letter", "quality", "over", "under")


@dataclass(frozen=True)
class Item:
    """A sentence to be rated: its number in the test set, its texts, each system's translation."""

    sentence: int
    source: str
    reference: str | None
    translations: Mapping[str, str]

    @property
    def words(self) -> list[str]:
        """The source words that can be marked, split at white space."""
        return self.source.split()


@dataclass(frozen=True)
class Mark:
    """One rating: quality 1 to 5, and the positions (from 0) of over- and under-translated source words."""

    quality: int
    over: tuple[int, ...] = ()
    under: tuple[int, ...] = ()


@dataclass(frozen=True)
class Study:
    """A study. `letters`: rater -> sentence (as text) -> the systems under each letter, in the order of letters."""

    folder: Path
    test: str
    seed: int
    show_reference: bool
    systems: tuple[str, ...]
    items: tuple[Item, ...]
    letters: Mapping[str, Mapping[str, list[list[str]]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def raters(self) -> list[str]:
        return sorted(self.letters)

    def item(self, sentence: int) -> Item:
        for item in self.items:
            if item.sentence == sentence:
                return item
        raise RunError(f"{self.name}: sentence {sentence} is not among the {len(self.items)} of this study")

    def translations_by_letter(self, rater: str, item: Item) -> dict[str, str]:
        """The translations of a sentence as the rater sees them: letter -> translation."""
        groups = self.letters[rater][str(item.sentence)]
        return {
            letter: item.translations[group[0]] for letter, group in zip(string.ascii_uppercase, groups, strict=False)
        }

    def systems_of_letter(self, rater: str, sentence: int, letter: str) -> list[str]:
        """The systems whose translation has this letter for the rater."""
        groups = self.letters.get(rater, {}).get(str(sentence), [])
        index = string.ascii_uppercase.find(letter) if len(letter) == 1 else -1
        if not 0 <= index < len(groups):
            raise RunError(f"{self.name}: {rater} was shown no translation {letter!r} of sentence {sentence}")
        return groups[index]


def system_name(root: Path, run: Run) -> str:
    """The name of a run in a study: its path below the runs folder, wherever it was opened from."""
    folder = Path(os.path.abspath(run.folder))
    roots = [place for place in (root.resolve(), exhibits.root()) if place is not None and folder.is_relative_to(place)]
    name = folder.relative_to(roots[0]).as_posix() if roots else run.name
    return f"{name}@{run.step}" if run.step and not name.endswith(f"@{run.step}") else name


def studies(root: Path) -> list[str]:
    """The names of all studies below a runs folder."""
    return sorted(path.parent.name for path in (root / FOLDER).glob(f"*/{STUDY}"))


def create(
    root: Path, name: str, runs: Sequence[Run], test: str, sentences: int, seed: int = 1, show_reference: bool = False
) -> Study:
    """Create a study of sentences drawn from a test set without replacement. Raises RunError if it cannot."""
    check_name("the study", name)
    if len(runs) > len(string.ascii_uppercase) or not runs:
        raise RunError(f"a study compares 1 to {len(string.ascii_uppercase)} runs, not {len(runs)}")
    translations_of = {system_name(root, run): run.translations(test) for run in runs}
    test_set = next(iter(translations_of.values())).test_set
    for system, translations in translations_of.items():
        if translations.test_set.sources != test_set.sources:
            raise RunError(f"{system} was tested on another version of {test}; translate it again")
    # An empty source has no words to mark.
    ratable = [n for n, source in enumerate(test_set.sources) if source.split()]
    if not 0 < sentences <= len(ratable):
        raise RunError(f"{test} has {len(ratable)} sentences; draw 1 to {len(ratable)}, not {sentences}")
    selected = np.random.default_rng(seed).choice(ratable, sentences, replace=False)
    references: Sequence[str | None] = test_set.references or [None] * len(test_set.sources)
    items = tuple(
        Item(
            n,
            test_set.sources[n],
            references[n],
            {system: translations.hypotheses[n] for system, translations in translations_of.items()},
        )
        for n in map(int, selected)
    )
    study = Study(root / FOLDER / name, test, seed, show_reference, tuple(translations_of), items)
    with _writing(study.folder):
        if (study.folder / STUDY).exists():
            raise RunError(f"there is a study {name!r} already; give this one another name")
        _write_study(study)
    return study


def open_study(root: Path, name: str) -> Study:
    """Open a study by name. Raises RunError if it is missing or cannot be read."""
    check_name("the study", name)
    folder = root / FOLDER / name
    if not (folder / STUDY).is_file():
        known = ", ".join(studies(root)) or "none"
        raise RunError(f"no study {name!r} below {root}, only: {known}; begin one: workbench rating new {name}")
    try:
        record = read_json(folder / STUDY, RESULT)
        items = tuple(Item(**item) for item in record.pop("items"))
        return Study(folder, items=items, systems=tuple(record.pop("systems")), **record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{folder / STUDY}: not a readable study ({type(error).__name__}: {error})") from None


def find_study(runs: Sequence[Run], name: str) -> tuple[Path, Study]:
    """The runs folder of some runs (see `folders_beside`), and its study of this name."""
    for root in folders_beside(runs[0].folder):
        if (root / FOLDER / name / STUDY).is_file():
            return root, open_study(root, name)
    raise RunError(f"there is no study {name!r} next to {runs[0].name}; begin one: workbench rating new {name}")


def enter(study: Study, rater: str) -> Study:
    """Add a rater to the study; the letters depend only on the study's seed and the rater's name."""
    check_name("the rater", rater)
    if rater in study.letters:
        return study
    with _writing(study.folder):
        current = open_study(study.folder.parent.parent, study.name)
        if rater not in current.letters:
            current = with_letters(current, rater)
            _write_study(current)
    return current


def with_letters(study: Study, rater: str) -> Study:
    """The study with the letters of a rater; nothing is written."""
    if rater in study.letters:
        return study
    letters = {str(item.sentence): _shuffled_groups(item, f"{study.seed}/{rater}") for item in study.items}
    return replace(study, letters={**study.letters, rater: letters})


def _shuffled_groups(item: Item, key: str) -> list[list[str]]:
    """The systems of a sentence in the rater's order, those with the same output together."""
    order = sorted(item.translations)
    random.Random(f"{key}/{item.sentence}").shuffle(order)
    groups: dict[str, list[str]] = {}
    for system in order:
        groups.setdefault(item.translations[system], []).append(system)
    return list(groups.values())


def marks(study: Study, rater: str) -> dict[int, dict[str, Mark]]:
    """The ratings of a rater: sentence -> letter -> rating."""
    path = study.folder / f"{rater}.csv"
    ratings: dict[int, dict[str, Mark]] = {}
    if path.is_file():
        for row in read_table(path, path.name, _COLUMNS):
            item, mark = read_row(study, row, path)
            ratings.setdefault(item.sentence, {})[row["letter"]] = mark
    return ratings


def save(study: Study, rater: str, new_marks: Mapping[int, Mapping[str, Mark]]) -> None:
    """Save ratings: sentence -> letter -> rating. The rater's other ratings stay, those of another tab too."""
    with _writing(study.folder):
        all_marks = {**marks(study, rater)}
        for sentence, by_letter in new_marks.items():
            all_marks[sentence] = {**all_marks.get(sentence, {}), **by_letter}
        rows = [
            (sentence, letter, mark.quality, positions_text(mark.over), positions_text(mark.under))
            for sentence, by_letter in sorted(all_marks.items())
            for letter, mark in sorted(by_letter.items())
        ]
        write_atomic(study.folder / f"{rater}.csv", csv_text(pd.DataFrame(rows, columns=list(_COLUMNS))))


def is_rated(study: Study, rater: str, item: Item, ratings: Mapping[int, Mapping[str, Mark]]) -> bool:
    """Return True if the rater has rated every translation of a sentence."""
    return set(study.translations_by_letter(rater, item)) <= set(ratings.get(item.sentence, {}))


def read_row(study: Study, row: Mapping[str, str], where: object) -> tuple[Item, Mark]:
    """Parse the sentence and the rating of a row of text."""
    try:
        item = study.item(int(row["sentence"]))
        over, under = (tuple(map(int, str(row[side]).split())) for side in ("over", "under"))
        mark = Mark(int(row["quality"]), over, under)
    except RunError:
        raise
    except ValueError as error:
        raise RunError(f"{where}: {error}; quality, sentence and word positions must be integers") from None
    check(item, mark, where)
    return item, mark


def check(item: Item, mark: Mark, where: object = "rating") -> None:
    """Raise RunError for an unknown quality, and for words that are not in the source."""
    if mark.quality not in QUALITIES:
        raise RunError(f"{where}: the quality {mark.quality} is none of {', '.join(map(str, QUALITIES))}")
    invalid = [word for word in (*mark.over, *mark.under) if not 0 <= word < len(item.words)]
    if invalid:
        raise RunError(f"{where}: sentence {item.sentence} has words 0 to {len(item.words) - 1}, not {invalid[0]}")


def positions_text(positions: Sequence[int]) -> str:
    """Word positions as written to a file: sorted, separated by blanks."""
    return " ".join(map(str, sorted(set(positions))))


def read_table(file: Path | BinaryIO, name: str, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read the rows of a CSV file called `name` as text; raises RunError if it is no CSV or lacks a column."""
    try:
        table = pd.read_csv(file, dtype="str", keep_default_na=False)
    except (OSError, ValueError) as error:
        raise RunError(f"{name}: cannot be read as CSV ({error})") from None
    missing = [column for column in columns if column not in table]
    if missing:
        raise RunError(f"{name}: lacks the column {missing[0]!r}; it has {', '.join(table.columns)}")
    return cast("list[dict[str, str]]", table.map(read_cell).to_dict("records"))


def _write_study(study: Study) -> None:
    record = {item.name: getattr(study, item.name) for item in fields(study) if item.name != "folder"}
    record["items"] = [asdict(item) for item in study.items]
    write_atomic(study.folder / STUDY, json.dumps(record, ensure_ascii=False, indent=1))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Create and lock the study's folder; raises RunError if it cannot be written, and ReadOnlyError."""
    read_only.check()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            yield
    except OSError as error:
        raise RunError(f"{folder}: ratings cannot be stored here ({error}); check its permissions") from None


def check_name(what: str, name: str) -> None:
    """Raise RunError for a name that is no valid file name on every system."""
    if not name:
        raise RunError(f"{what} has no name: give one")
    if not _NAME.fullmatch(name):
        raise RunError(f"{what} {name!r} is used as a file name: use letters, digits, + and - only")
