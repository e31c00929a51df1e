"""What the file of a paper holds: tables, claims, checks and translation cases, each with what it must agree with.

A number keeps the digits it is printed with: `str(value)` is what stands in the paper, `float(value)` what it is worth.
It knows what refers to what, no file; what comes out of a check is `checks`' business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from core_models.settings import ConfigError, Section, nearest

if TYPE_CHECKING:
    import pandas as pd

Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
REFERENCE = re.compile(r"\[([^\[\]]*)\]")  # in the arithmetic of a check: [TABLE/ROW/COLUMN], [PAPER:claim/ID]
Entry = TypeVar("Entry")
# What a column prints that can be had of a run too. A Meteor is none of them: no measure here counts as it does.
Measure = Literal[
    "bleu", "parameters", "parameters-without-embeddings", "parameters-added", "train-speed", "decode-speed",
    "aer", "cdr", "over", "under", "entropy", "diversity",
]  # fmt: skip
AGAINST_BASELINE = ("parameters-added", "train-speed", "decode-speed")
Languages = Annotated[str, Field(pattern=r"^([a-z]+-[a-z]+)?$")]


class Heading(Section):
    """Which paper it is; `name` is how the project calls it in short. `left_out`: what of it, or of the code that was
    released with it, is outside this project's scope."""

    title: str
    authors: tuple[str, ...] = Field(min_length=1)
    year: int
    venue: str
    name: str
    left_out: str = ""


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


def _distinct(what: str, keys: Iterable[str]) -> None:
    twice = [key for key, times in Counter(keys).items() if times > 1]
    if twice:
        raise ValueError(f"the {what} {twice[0]!r} is there twice; give each a name of its own")


def _find(what: str, key: str, known: Mapping[str, Entry]) -> Entry:
    if key not in known:
        raise ConfigError(f"there is no {what} {key!r}; {nearest(key, list(known))}")
    return known[key]
