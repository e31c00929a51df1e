"""Schema of a paper's file: tables, claims, checks, findings and translation cases, with their consistency rules.

A number keeps its printed digits: `str(value)` is the text in the paper, `float(value)` its value. Knows references
between numbers, no file; `arithmetic_checks` evaluates the checks.
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
# Measures of a column that can be computed for a run too. Not METEOR: no measure here is comparable to the papers'.
Measure = Literal[
    "bleu", "parameters", "parameters-without-embeddings", "parameters-added", "train-speed", "decode-speed",
    "aer", "cdr", "over", "under", "entropy", "diversity",
]  # fmt: skip
AGAINST_BASELINE = ("parameters-added", "train-speed", "decode-speed")
Languages = Annotated[str, Field(pattern=r"^([a-z]+-[a-z]+)?$")]
FindingKind = Literal["gain", "order", "property", "curve", "cost"]
# By kind the least share of what is reported that an interval must leave possible, else the claim is refuted here. 0:
# the direction alone counts.
LEAST_SHARES: Mapping[FindingKind, float] = {"gain": 0.5, "order": 0.0, "property": 0.0, "curve": 0.0, "cost": 0.9}


class Heading(Section):
    """Title, authors and venue of a paper; `name` is the project's short name.

    left_out: parts of the paper or its released code outside of this project's scope.
    """

    title: str
    authors: tuple[str, ...] = Field(min_length=1)
    year: int
    venue: str
    name: str
    left_out: str = ""


class Column(Section):
    """A column as printed. measure: the comparable measure of runs; languages: if they are not the table's."""

    key: Key
    label: str
    unit: str = ""
    measure: Measure | None = None
    languages: Languages = ""


class Row(Section):
    """A row as printed.

    system: its name in the project's catalogue. settings_here: those of a smaller system of ours that stands for this
    row too, where the paper's is too large to train here. cited: the source if the paper took it from elsewhere.
    iteration: the routing iteration of its values.
    """

    key: Key
    label: str
    system: str = ""
    settings: str = ""
    settings_here: str = ""
    cited: str = ""
    iteration: int | None = Field(None, gt=0)
    values: dict[str, Decimal]
    note: str = ""


def printed_name(table: str) -> str:
    """The paper's name of a table or figure, by its id: table-1 is Table 1."""
    return table.replace("-", " ", 1).capitalize()


class Table(Section):
    """A table, or a figure with printed values; `drawing` is the project's figure of the same kind.

    baselines: keys of the rows to which speeds and added parameters are relative, each for the rows from it downwards.
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
        """The baseline of a row: the last of `baselines` above or at it, None above the first."""
        keys = [other.key for other in self.rows]
        above = [key for key in keys[: keys.index(row.key) + 1] if key in self.baselines]
        return self.row(above[-1]) if above else None

    def languages_of(self, column: Column) -> str:
        return column.languages or self.languages

    def value(self, row: str, column: str) -> Decimal:
        return _find(f"value in {self.id}, row {row},", column, self.row(row).values)

    def printed(self) -> pd.DataFrame:
        """The table as text: row, system, settings, a column for each label (empty without a value), cited."""
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
    """An arithmetic relation between printed numbers; `agrees` is its expected result.

    `printed` is a reference or a number that is in no table and no claim; `recompute` is arithmetic over references in
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
        """All printed numbers in it, as references: TABLE/ROW/COLUMN, claim/ID, or PAPER: before either."""
        printed = [self.printed] if isinstance(self.printed, str) else []
        return list(dict.fromkeys(printed + REFERENCE.findall(self.recompute)))


class Measurement(Section):
    """What of ours answers a finding, from the result files of the project's experiments.

    Either the difference `system` minus `baseline` of an `experiment`, by `metric` on `test`; or, of a result `file`,
    the column `value` of the rows where columns have the values of `where`, minus that of other rows or a number.
    low, high: columns with the interval of a row. rows: what several rows are; the interval of rounds of a benchmark is
    their range. of_rest: the difference in % of what the other rows lack to 1. baseline: of a file of differences what
    they are to, by default the first system of the grid. setting: what the data is called, by default the experiment or
    file.
    """

    experiment: str = ""
    system: str = ""
    baseline: str = ""
    metric: str = "bleu"
    test: str = "test"
    file: str = ""
    where: dict[str, str | int] = {}
    value: str = ""
    low: str = "low"
    high: str = "high"
    minus: dict[str, str | int] | Decimal = Decimal(0)
    rows: Literal["seeds", "rounds"] = "seeds"
    of_rest: bool = False
    setting: str = ""

    @model_validator(mode="after")
    def _one_source(self) -> Measurement:
        if bool(self.experiment) == bool(self.file):
            raise ValueError("give either an experiment or a file")
        if self.experiment and not (self.system and self.baseline):
            raise ValueError(f"experiment {self.experiment}: name the system and its baseline")
        if self.file and not self.value:
            raise ValueError(f"file {self.file}: name the column of the value")
        if self.of_rest and not (self.file and isinstance(self.minus, Mapping)):
            raise ValueError("of_rest: a difference of two rows of a file")
        if self.rows == "rounds" and self.minus:
            raise ValueError("minus: nothing is subtracted from the rounds of a benchmark")
        return self


class Finding(Section):
    """A claim that an experiment can meet, besides the gains in score that the tables hold.

    reported: arithmetic over references, with the sign of what is claimed; 1 or -1 where only a direction is printed.
    without: why nothing of ours answers it.
    """

    id: Key
    kind: FindingKind
    what: str
    where: str
    reported: str
    direction_only: bool = False
    unit: str = ""
    ours: tuple[Measurement, ...] = ()
    without: str = ""

    @model_validator(mode="after")
    def _answered(self) -> Finding:
        if bool(self.ours) == bool(self.without):
            raise ValueError("name what of ours answers it (ours), or say why nothing does (without)")
        return self

    @property
    def references(self) -> list[str]:
        return list(dict.fromkeys(REFERENCE.findall(self.reported)))

    @property
    def share(self) -> float:
        """The least share of what is reported that an interval must leave possible."""
        return LEAST_SHARES[self.kind]


class Case(Section):
    """A translation example of the paper: the systems it compares and what it shows, never its text."""

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
    findings: tuple[Finding, ...] = Field((), alias="finding")
    cases: tuple[Case, ...] = Field((), alias="case")

    @model_validator(mode="after")
    def _named_once(self) -> Paper:
        _distinct("table", [table.id for table in self.tables])
        _distinct("claim", [claim.id for claim in self.claims])
        _distinct("check", [check.id for check in self.checks])
        _distinct("finding", [finding.id for finding in self.findings])
        _distinct("case", [case.id for case in self.cases])
        return self

    def table(self, name: str) -> Table:
        return _find("table", name, {table.id: table for table in self.tables})

    def claim(self, name: str) -> Claim:
        return _find("claim", name, {claim.id: claim for claim in self.claims})

    def value(self, reference: str) -> Decimal:
        """The number at TABLE/ROW/COLUMN or claim/ID; raises ConfigError with the nearest known name."""
        parts = reference.split("/")
        if len(parts) == 2 and parts[0] == "claim":
            return self.claim(parts[1]).value
        if len(parts) == 3:
            return self.table(parts[0]).value(*parts[1:])
        raise ConfigError(
            f"{reference!r} is no reference; write TABLE/ROW/COLUMN or claim/ID, PAPER: before it at need"
        )


def resolve(reference: str, paper: Paper, papers: Mapping[str, Paper]) -> Decimal:
    """The number of a reference in `paper`; with the prefix `PAPER:` in one of `papers`."""
    name, other, rest = reference.rpartition(":")
    return (_find("paper", name, papers) if other else paper).value(rest)


def _distinct(what: str, keys: Iterable[str]) -> None:
    twice = [key for key, times in Counter(keys).items() if times > 1]
    if twice:
        raise ValueError(f"the {what} {twice[0]!r} is there twice; give each a name of its own")


def _find(what: str, key: str, entries: Mapping[str, Entry]) -> Entry:
    if key not in entries:
        raise ConfigError(f"there is no {what} {key!r}; {nearest(key, list(entries))}")
    return entries[key]
