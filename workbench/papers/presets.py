"""Presets of the gallery: one for each table and figure of a paper; its checks and claims as tables; a system's rows.

Knows the papers' files, no number of a run (`comparison` does), and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_models.config import ModelConfig
from core_models.settings import settings_in
from workbench.papers.arithmetic_checks import check_table
from workbench.papers.records import records
from workbench.papers.schema import Case, Check, Column, Paper, Row, Table, printed_name, resolve
from workbench.store.runs import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Preset:
    """A table or figure of a paper; without a `table` it has translations and no numbers."""

    paper: str
    id: str
    what: str
    table: Table | None = None
    cases: tuple[Case, ...] = ()

    @property
    def title(self) -> str:
        """The paper's name for it, e.g. Table 1."""
        return printed_name(self.id)


def presets(papers: Mapping[str, Paper]) -> dict[str, dict[str, Preset]]:
    """The presets of each paper by file name and id, tables first."""
    return {name: {preset.id: preset for preset in _of_paper(name, paper)} for name, paper in papers.items()}


def _of_paper(name: str, paper: Paper) -> Iterator[Preset]:
    for table in paper.tables:
        yield Preset(name, table.id, table.what, table, tuple(case for case in paper.cases if case.id == table.id))
    tables = {table.id for table in paper.tables}
    yield from (Preset(name, case.id, case.what, None, (case,)) for case in paper.cases if case.id not in tables)


def cited_as(paper: Paper) -> str:
    """The citation of a paper, e.g. Dou et al. 2019."""
    surname, others = paper.heading.authors[0].rpartition(" ")[2], len(paper.heading.authors) > 1
    return f"{surname}{' et al.' if others else ''} {paper.heading.year}"


def columns_with_values(table: Table) -> list[Column]:
    """The columns with printed values; empty for a figure without printed values."""
    return [column for column in table.columns if any(column.key in row.values for row in table.rows)]


def rows_of(table: Table, system: str) -> list[Row]:
    """The rows of a system in the form of `Run.system`: NAME or NAME:key=value,key=value.

    All settings of a row, as printed or as ours (`settings_here`), must be the system's; of several such rows those
    with most settings count. Rows cited from other papers count only if the paper has no row of its own.
    """
    name, settings = system.partition(":")[0], settings_of(system)
    of_name = ((row, shared_settings(row, settings)) for row in table.rows if row.system == name)
    fitting = [(row, count) for row, count in of_name if count is not None]
    candidates = [(row, count) for row, count in fitting if not row.cited] or fitting
    most = max((count for _, count in candidates), default=0)
    return [row for row, count in candidates if count == most]


def shared_settings(row: Row, settings: set[str]) -> int | None:
    """How many settings a row shares with a system; None if the row has one that the system lacks."""
    of_row = (parts_of(row.settings), parts_of(row.settings_here or row.settings))
    return max((len(parts) for parts in of_row if parts <= settings), default=None)


def settings_of(system: str) -> set[str]:
    """The settings of NAME:key=value,key=value."""
    return parts_of(system.partition(":")[2])


def parts_of(settings: str) -> set[str]:
    """key=value of each setting of key=value,key=value, by the names of today."""
    parts = (part.partition("=") for part in settings_in(settings))
    return {f"{ModelConfig.former_names.get(key, key)}{sign}{value}" for key, sign, value in parts}


def in_row_order(table: Table, runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their systems in the table, others at the end."""
    keys = [row.key for row in table.rows]

    def rank(run: Run) -> int:
        rows = rows_of(table, run.system)
        return keys.index(rows[0].key) if rows else len(keys)

    return sorted(runs, key=rank)


def checks_of(papers: Mapping[str, Paper], name: str, table: str = "") -> pd.DataFrame:
    """The checks of a paper that involve a table; without `table` those that involve none.

    Columns: what, reported, recomputed (both as text), agrees, note, known. A recomputed number has as many decimals as
    the printed one, or as those at which the two are compared.
    """
    import pandas as pd

    paper = papers[name]
    tables = [table] if table else [table.id for table in paper.tables]
    checks = {check.id: check for check in paper.checks if _touches(check, tables) == bool(table)}
    outcomes = check_table(papers)
    rows = []
    for outcome in records(outcomes[outcomes["paper"] == name]):
        if outcome["id"] in checks:
            check = checks[outcome["id"]]
            printed = check.printed if not isinstance(check.printed, str) else resolve(check.printed, paper, papers)
            decimals = max(check.decimals, len(str(printed).partition(".")[2]))
            shown = {"reported": str(printed), "recomputed": f"{outcome['recomputed']:.{decimals}f}"}
            rows.append({**{key: outcome[key] for key in ("what", "agrees", "note", "known")}, **shown})
    return pd.DataFrame(rows, columns=["what", "reported", "recomputed", "agrees", "note", "known"])


def _touches(check: Check, tables: Sequence[str]) -> bool:
    return any(reference.partition("/")[0] in tables for reference in check.references)


def claims_of(paper: Paper) -> pd.DataFrame:
    """The numbers in a paper's text, abstract and captions: what, reported (as text), unit, where, system."""
    import pandas as pd

    rows = [
        {"what": claim.what, "reported": str(claim.value), "unit": claim.unit, "where": claim.where,
         "system": claim.system}
        for claim in paper.claims
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["what", "reported", "unit", "where", "system"])
