"""Presets of the gallery: one for each table and figure of a paper, and the scores of ours that stand beside its rows.

Ours are the scores of runs, and where no run of a row's system is given those in the result files of experiments. They
come from other data than the paper's, so each keeps its run or experiment, data, test set, metric and signature. It
knows the papers' files and who has a score, and draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.resources import data_folder
from workbench.evaluation import METRIC_NAMES, score_table
from workbench.experiments.grid import read_experiment
from workbench.papers.checks import check_table
from workbench.papers.reading import Case, Check, Column, Paper, Row, Table, resolve
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

NOT_HERE = "not run here"
SEE_OWN = "see the paper's own row"
OURS = ["row", "system", "metric", "score", "low", "high", "n", "signature", "where", "data", "test"]
_SCORES = ".scores.csv"


@dataclass(frozen=True)
class Preset:
    """A table or figure of a paper; without a `table` the paper prints translations there and no numbers."""

    paper: str
    id: str
    what: str
    table: Table | None = None
    cases: tuple[Case, ...] = ()

    @property
    def title(self) -> str:
        """As the paper calls it: Table 1."""
        return self.id.replace("-", " ", 1).capitalize()


def presets(papers: Mapping[str, Paper]) -> dict[str, dict[str, Preset]]:
    """Of each paper, by the name of its file: its presets by their ids, tables first."""
    return {name: {preset.id: preset for preset in _of_paper(name, paper)} for name, paper in papers.items()}


def _of_paper(name: str, paper: Paper) -> Iterator[Preset]:
    for table in paper.tables:
        yield Preset(name, table.id, table.what, table, tuple(case for case in paper.cases if case.id == table.id))
    tables = {table.id for table in paper.tables}
    yield from (Preset(name, case.id, case.what, None, (case,)) for case in paper.cases if case.id not in tables)


def cited_as(paper: Paper) -> str:
    """The paper as others cite it: Dou et al. 2019."""
    surname, others = paper.heading.authors[0].rpartition(" ")[2], len(paper.heading.authors) > 1
    return f"{surname}{' et al.' if others else ''} {paper.heading.year}"


def metric_of(column: Column) -> str | None:
    """The metric of ours that a column prints too, by its unit: `BLEU, case-sensitive` is bleu, a Meteor is none."""
    measured = column.unit.partition(",")[0].strip()
    return next((metric for metric, name in METRIC_NAMES.items() if name == measured), None)


def columns_with_values(table: Table) -> list[Column]:
    """The columns in which anything is printed; a figure whose values nobody printed has none."""
    return [column for column in table.columns if any(column.key in row.values for row in table.rows)]


def metrics(table: Table) -> list[str]:
    """The metrics of ours that a table prints too."""
    found = (metric_of(column) for column in columns_with_values(table))
    return list(dict.fromkeys(metric for metric in found if metric))


def rows_of(table: Table, system: str) -> list[Row]:
    """The rows that show a system, given as `Run.system` says it: NAME or NAME:key=value,key=value.

    All settings of a row must be the system's; where several rows fit, those with most settings. A row that is cited
    from elsewhere counts only where the paper has none of its own.
    """
    name, _, settings = system.partition(":")
    fitting = [row for row in table.rows if row.system == name and _parts(row.settings) <= _parts(settings)]
    own = [row for row in fitting if not row.cited] or fitting
    most = max((len(_parts(row.settings)) for row in own), default=0)
    return [row for row in own if len(_parts(row.settings)) == most]


def _parts(settings: str) -> set[str]:
    return {part.strip() for part in settings.split(",") if part.strip()}


def in_row_order(table: Table, runs: Sequence[Run]) -> list[Run]:
    """The runs as the table has their systems, those that it has not at the end."""
    keys = [row.key for row in table.rows]

    def place(run: Run) -> int:
        rows = rows_of(table, run.system)
        return keys.index(rows[0].key) if rows else len(keys)

    return sorted(runs, key=place)


def ours(table: Table, runs: Sequence[Run], test: str, results: Path | None = None) -> pd.DataFrame:
    """Scores of ours for the rows of a table, in the metrics that it prints: columns `OURS`; row is a row's key.

    A row has the given runs of its system; where there is none, what the result files of experiments (`results`, the
    project's unless told) have of it. low and high: 95 % bootstrap. Raises RunError where a run lacks the test set.
    """
    import pandas as pd

    found = [one for run in runs for one in _of_run(table, run, test)]
    covered = {one["row"] for one in found}
    elsewhere = _of_experiments(table, results or data_folder() / "experiments" / "results")
    return pd.DataFrame([*found, *(one for one in elsewhere if one["row"] not in covered)], columns=OURS)


def _of_run(table: Table, run: Run, test: str) -> Iterator[dict[str, Any]]:
    rows, wanted = rows_of(table, run.system), metrics(table)
    if not rows or not wanted:
        return
    place = {
        "system": run.system,
        "where": f"run {run.name}",
        "data": run.config.data_folder(run.folder).parent.name,
        "test": test,
    }
    for score in _records(score_table([run], test, wanted)):
        yield from ({**score, **place, "row": row.key} for row in rows)


def _of_experiments(table: Table, results: Path) -> Iterator[dict[str, Any]]:
    import pandas as pd

    wanted = metrics(table)
    for path in sorted(results.glob(f"*{_SCORES}")) if wanted else ():
        name = path.name.removesuffix(_SCORES)
        grid = results.parent / f"{name}.yaml"
        systems = read_experiment(grid).systems if grid.is_file() else {}
        try:
            scores = pd.read_csv(path)
            for score in _records(scores[scores["metric"].isin(wanted)]):
                system = systems.get(score["system"], score["system"])
                seeds = f"{score['seeds']} seed{'s' if score['seeds'] > 1 else ''}"
                place = {"system": system, "where": f"experiment {name}, {seeds}", "data": name}
                yield from ({**score, **place, "row": row.key} for row in rows_of(table, system))
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path}: not the scores of an experiment ({error}); write them again: workbench experiment table"
            ) from None


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def beside(table: Table, found: pd.DataFrame) -> pd.DataFrame:
    """What is printed beside ours: row, system with its settings, a column by each label as printed, cited, then ours
    and where it is.

    A row of the table has as many lines as there are scores of ours for it; the first has what is printed. Where there
    is none, `where` says so. A table that prints nothing we score stands there without columns of ours.
    """
    import pandas as pd

    lines: list[dict[str, Any]] = []
    as_printed = table.printed()
    as_printed["system"] = [":".join(filter(None, (row.system, row.settings))) for row in table.rows]
    as_printed = as_printed.drop(columns="settings")
    for row, printed in zip(table.rows, _records(as_printed), strict=True):
        mine = _records(found[found["row"] == row.key]) if metrics(table) else []
        lines.append({**printed, **_said(mine[0] if mine else {"where": _absent(table, row)})})
        lines += [{"row": row.label, **_said(one)} for one in mine[1:]]
    columns = [*as_printed.columns, *(_said({}) if metrics(table) else ())]
    return pd.DataFrame(lines)[columns]


def _absent(table: Table, row: Row) -> str:
    """What is said where nothing of ours stands beside a row: ours stands beside the paper's own row, or nowhere."""
    twins = (other for other in table.rows if (other.system, other.settings) == (row.system, row.settings))
    return SEE_OWN if row.cited and any(not twin.cited for twin in twins) and row.system else NOT_HERE


def origins(found: pd.DataFrame) -> str:
    """Where scores of ours are from, in words: run or experiment, system, data, test set, metric."""
    told = dict.fromkeys(
        f"{one['where']} ({one['system']}), data {one['data']}, test set {one['test']}, {METRIC_NAMES[one['metric']]}"
        for one in _records(found)
    )
    return "; ".join(told)


def _said(one: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a score of ours, in the order of the table's columns."""
    return {
        "ours": one.get("score"),
        "low": one.get("low"),
        "high": one.get("high"),
        "metric": METRIC_NAMES.get(one.get("metric", ""), ""),
        "where": one.get("where", ""),
        "ran as": one.get("system", ""),
        "data": one.get("data", ""),
        "test": one.get("test", ""),
        "signature": one.get("signature", ""),
    }


def checks_of(papers: Mapping[str, Paper], name: str, table: str = "") -> pd.DataFrame:
    """The checks of a paper that touch a table, or without one those that touch none: what, printed, recomputed (both
    as text), agrees, note, known.

    A recomputed number has as many decimals as the printed one, or as the two are compared at.
    """
    import pandas as pd

    paper = papers[name]
    wanted = [table] if table else [table.id for table in paper.tables]
    chosen = {check.id: check for check in paper.checks if _touches(check, wanted) == bool(table)}
    outcomes = check_table(papers)
    rows = []
    for outcome in _records(outcomes[outcomes["paper"] == name]):
        if outcome["id"] in chosen:
            check = chosen[outcome["id"]]
            printed = check.printed if not isinstance(check.printed, str) else resolve(check.printed, paper, papers)
            decimals = max(check.decimals, len(str(printed).partition(".")[2]))
            shown = {"printed": str(printed), "recomputed": f"{outcome['recomputed']:.{decimals}f}"}
            rows.append({**{key: outcome[key] for key in ("what", "agrees", "note", "known")}, **shown})
    return pd.DataFrame(rows, columns=["what", "printed", "recomputed", "agrees", "note", "known"])


def _touches(check: Check, tables: Sequence[str]) -> bool:
    return any(reference.partition("/")[0] in tables for reference in check.references)


def claims_of(paper: Paper) -> pd.DataFrame:
    """The numbers in a paper's text, abstract and captions: what, printed (as text), unit, where, system."""
    import pandas as pd

    rows = [
        {"what": claim.what, "printed": str(claim.value), "unit": claim.unit, "where": claim.where,
         "system": claim.system}
        for claim in paper.claims
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["what", "printed", "unit", "where", "system"])
