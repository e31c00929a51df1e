"""The numbers that the papers print, read from `data/papers/*.toml`: tables, claims, checks, translation cases.

A number keeps the digits it is printed with: `str(value)` is what stands in the paper, `float(value)` what it is worth.
It knows the files and what they refer to; what comes out of a check is `checks`' business, and of our runs it knows
nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from core_models.config import ConfigError, Section, nearest, parse
from core_models.resources import data_folder

if TYPE_CHECKING:
    import pandas as pd

Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
REFERENCE = re.compile(r"\[([^\[\]]*)\]")  # in the arithmetic of a check: [TABLE/ROW/COLUMN], [PAPER:claim/ID]
Entry = TypeVar("Entry")
Kind = TypeVar("Kind", bound=Section)
# What a column prints that can be had of a run too. A Meteor is none of them: no measure here counts as it does.
Measure = Literal[
    "bleu", "parameters", "parameters-without-embeddings", "parameters-added", "train-speed", "decode-speed",
    "aer", "cdr", "over", "under", "entropy", "diversity",
]  # fmt: skip
AGAINST_BASELINE = ("parameters-added", "train-speed", "decode-speed")
Languages = Annotated[str, Field(pattern=r"^([a-z]+-[a-z]+)?$")]


class Heading(Section):
    """Which paper it is; `name` is how the project calls it in short."""

    title: str
    authors: tuple[str, ...] = Field(min_length=1)
    year: int
    venue: str
    name: str


class Column(Section):
    """A column as printed. `measure`: what of ours it can stand beside; `languages`: where they are not the table's."""

    key: Key
    label: str
    unit: str = ""
    measure: Measure | None = None
    languages: Languages = ""


class Row(Section):
    """A row as printed: `system` is our catalogue's name for it, `cited` where the paper took it from, `iteration` the
    one of a routing that it is about."""

    key: Key
    label: str
    system: str = ""
    settings: str = ""
    cited: str = ""
    iteration: int | None = Field(None, gt=0)
    values: dict[str, Decimal]
    note: str = ""


class Table(Section):
    """A table, or a figure whose values are printed; `drawing` shows the same kind of thing for our runs.

    baselines: keys of the rows that speeds and added parameters are relative to, each for the rows from it downwards.
    """

    id: Key
    what: str
    data: str = ""
    languages: Languages = ""
    page: int | None = Field(None, gt=0)
    columns: tuple[Column, ...] = Field(min_length=1)
    baselines: tuple[Key, ...] = ()
    drawing: str = ""
    options: dict[str, str | bool | int] = {}
    rows: tuple[Row, ...] = Field(alias="row", min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Table:
        keys = [column.key for column in self.columns]
        _distinct("column", keys)
        _distinct("column label", [column.label for column in self.columns])
        _distinct("row", [row.key for row in self.rows])
        for row in self.rows:
            for key in row.values:
                if key not in keys:
                    raise ValueError(f"row {row.key}: there is no column {key!r}; {nearest(key, keys)}")
        rows = [row.key for row in self.rows]
        if missing := [key for key in self.baselines if key not in rows]:
            raise ValueError(f"baselines: there is no row {missing[0]!r}; {nearest(missing[0], rows)}")
        relative = [column.key for column in self.columns if column.measure in AGAINST_BASELINE]
        if relative and not self.baselines:
            raise ValueError(f"column {relative[0]}: it is measured against a baseline; name its row in `baselines`")
        return self

    def row(self, key: str) -> Row:
        return _find(f"row of {self.id}", key, {row.key: row for row in self.rows})

    def baseline_of(self, row: Row) -> Row | None:
        """The row that a row is relative to, the last of `baselines` down to itself; none above the first of them."""
        keys = [other.key for other in self.rows]
        above = [key for key in keys[: keys.index(row.key) + 1] if key in self.baselines]
        return self.row(above[-1]) if above else None

    def languages_of(self, column: Column) -> str:
        return column.languages or self.languages

    def value(self, row: str, column: str) -> Decimal:
        return _find(f"value in {self.id}, row {row},", column, self.row(row).values)

    def printed(self) -> pd.DataFrame:
        """The table as text: row, system, settings, a column by each label (empty where nothing is printed), cited."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"row": row.label, "system": row.system, "settings": row.settings}
                | {column.label: str(row.values.get(column.key, "")) for column in self.columns}
                | {"cited": row.cited}
                for row in self.rows
            ]
        )


class Claim(Section):
    """A number in running text, abstract or caption."""

    id: Key
    where: str
    value: Decimal
    unit: str = ""
    what: str
    system: str = ""


class Check(Section):
    """An arithmetic relation between printed numbers: `agrees` is what working it out is expected to say.

    `printed` is a reference or a number that no table and no claim holds; `recompute` is arithmetic over references in
    brackets; the two are compared at `decimals`. `known` is this project's label of a known contradiction.
    """

    id: Key
    what: str
    printed: str | Decimal
    recompute: str
    decimals: int = Field(2, ge=0)
    agrees: bool
    note: str = ""
    known: str = ""

    @model_validator(mode="after")
    def _explained(self) -> Check:
        if not self.agrees and not self.note:
            raise ValueError("a check that does not agree says why: give a note")
        if self.agrees and self.known:
            raise ValueError(f"it agrees, so it cannot be the known contradiction {self.known}; leave `known` out")
        return self

    @property
    def references(self) -> list[str]:
        """All the printed numbers it is about, as references: TABLE/ROW/COLUMN, claim/ID, or PAPER: before either."""
        printed = [self.printed] if isinstance(self.printed, str) else []
        return list(dict.fromkeys(printed + REFERENCE.findall(self.recompute)))


class Case(Section):
    """A translation case that the paper prints: which systems it compares and what it shows, never its text."""

    id: Key
    what: str
    page: int | None = Field(None, gt=0)
    systems: tuple[str, ...] = ()
    shows: str


class Paper(Section):
    heading: Heading = Field(alias="paper")
    tables: tuple[Table, ...] = Field((), alias="table")
    claims: tuple[Claim, ...] = Field((), alias="claim")
    checks: tuple[Check, ...] = Field((), alias="check")
    cases: tuple[Case, ...] = Field((), alias="case")

    @model_validator(mode="after")
    def _named_once(self) -> Paper:
        _distinct("table", [table.id for table in self.tables])
        _distinct("claim", [claim.id for claim in self.claims])
        _distinct("check", [check.id for check in self.checks])
        _distinct("case", [case.id for case in self.cases])
        return self

    def table(self, name: str) -> Table:
        return _find("table", name, {table.id: table for table in self.tables})

    def claim(self, name: str) -> Claim:
        return _find("claim", name, {claim.id: claim for claim in self.claims})

    def value(self, reference: str) -> Decimal:
        """The number at TABLE/ROW/COLUMN or claim/ID; raises ConfigError with the nearest name that is there."""
        parts = reference.split("/")
        if len(parts) == 2 and parts[0] == "claim":
            return self.claim(parts[1]).value
        if len(parts) == 3:
            return self.table(parts[0]).value(*parts[1:])
        raise ConfigError(
            f"{reference!r} is no reference; write TABLE/ROW/COLUMN or claim/ID, PAPER: before it at need"
        )


def resolve(reference: str, paper: Paper, papers: Mapping[str, Paper]) -> Decimal:
    """The number that `reference` means where `paper` uses it; `PAPER:` before it means one of `papers`."""
    name, other, rest = reference.rpartition(":")
    return (_find("paper", name, papers) if other else paper).value(rest)


def load(path: Path) -> Paper:
    """Read one paper; raises ConfigError naming file and field.

    References to its own numbers are looked up here, those to other papers by `library`.
    """
    content = _read_toml(path)
    tables = [
        {**table, "row": _parsed(Row, table, "row", f"{path}: {_called('table', table, number)}")}
        for number, table in enumerate(_entries(content, "table", str(path)), 1)
    ]
    paper = parse(
        Paper,
        {
            **content,
            "paper": parse(Heading, _mapping(content.get("paper", {}), f"{path}: paper"), f"{path}: paper"),
            "table": _parsed(Table, {"table": tables}, "table", str(path)),
            **{key: _parsed(kind, content, key, str(path)) for key, kind in (("claim", Claim), ("check", Check))},
            "case": _parsed(Case, content, "case", str(path)),
        },
        str(path),
    )
    _look_up(paper, {}, str(path), lambda reference: ":" not in reference)
    return paper


@cache
def library(folder: Path | None = None) -> dict[str, Paper]:
    """All papers by the names of their files, read once; raises ConfigError naming file and field."""
    folder = folder or data_folder() / "papers"
    paths = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    papers = {name: load(path) for name, path in paths.items()}
    for name, paper in papers.items():
        _look_up(paper, papers, str(paths[name]), lambda reference: ":" in reference)
    return papers


def _look_up(paper: Paper, papers: Mapping[str, Paper], where: str, wanted: Callable[[str], bool]) -> None:
    for check in paper.checks:
        for reference in filter(wanted, check.references):
            try:
                resolve(reference, paper, papers)
            except ConfigError as error:
                raise ConfigError(f"{where}: check {check.id}: {error}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    """A TOML file, its fractions as Decimal: 39.10 stays 39.10. A key that stands twice is refused by the format."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # TOML's and Unicode's are both ValueErrors
        raise ConfigError(f"{path}: not readable as TOML: {error}") from None


def _parsed(kind: type[Kind], content: Mapping[str, Any], key: str, where: str) -> tuple[Kind, ...]:
    """The entries of [[key]], validated one by one, so that a refusal says in which it is."""
    return tuple(
        parse(kind, entry, f"{where}: {_called(key, entry, number)}")
        for number, entry in enumerate(_entries(content, key, where), 1)
    )


def _entries(content: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise ConfigError(f"{where}: {key} must be a list of entries; write [[{key}]] before each")
    return [_mapping(entry, f"{where}: {key}") for entry in entries]


def _mapping(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must hold keys and values, not {entry!r}")
    return entry


def _called(key: str, entry: Mapping[str, Any], number: int) -> str:
    return f"{key} {entry.get('id') or entry.get('key') or number}"


def _distinct(what: str, keys: Iterable[str]) -> None:
    twice = [key for key, times in Counter(keys).items() if times > 1]
    if twice:
        raise ValueError(f"the {what} {twice[0]!r} is there twice; give each a name of its own")


def _find(what: str, key: str, known: Mapping[str, Entry]) -> Entry:
    if key not in known:
        raise ConfigError(f"there is no {what} {key!r}; {nearest(key, list(known))}")
    return known[key]
