"""The drawing of a paper's table: what it prints, and ours where a chosen run, a bench or an experiment has it.

Without a run, results of benches and experiments stand beside what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from workbench.experiments.ablation import result_tables
from workbench.figures.options import FigureOptions, Names
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.papers.our_measurements import result_files
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.papers.presets import Preset
    from workbench.papers.schema import Column, Row, Table
    from workbench.plotting.grammar import Figure

# Units of the speeds that Zheng 2019 prints as such: what others print can be said in them too.
_TIMES: dict[str | None, str] = {
    "train-speed": "times the baseline's training speed",
    "decode-speed": "times the baseline's decoding speed",
}


class PaperTableOptions(FigureOptions):
    """Options of the figure `paper-table`."""

    paper: str = Field("", description="The name of a paper in data/papers")
    table: str = Field("", description="The name of one of its tables")
    columns: Names = Field(
        (), description="Columns by key; those with a metric of ours unless told, or all where there is none"
    )
    relative: bool = Field(
        False, description="Speeds as times of the baseline that they are printed for, so that ours can stand there"
    )


def _files(request: Request, options: PaperTableOptions) -> Iterable[Path]:
    """What stands beside what is printed: results kept beside the runs, of experiments and of benches."""
    yield from (path for run in request.runs for path in result_files(run, request.test))
    yield from result_tables()


@figure("paper-table", scope="test_set", options=PaperTableOptions, needs_runs=False, depends_on=_files)
def _paper_table(request: Request, options: PaperTableOptions) -> Figure:
    """A table that a paper prints as dots, and ours where a run, a bench or an experiment has it."""
    from workbench.papers import presets
    from workbench.papers.load import library
    from workbench.papers.our_results import our_results
    from workbench.views.paper_gallery.plots import paper_table

    preset, table = _asked(options.paper, options.table)
    columns = _columns(options.columns, table)
    relative = options.relative
    units = _units(columns, relative)
    found = our_results(table, request.runs, request.test)
    found = found[found["measure"].isin(list(units))]
    names = {f"run {name}": short for name, short in short_names(request.runs).items()}
    mine = found.assign(
        series=[names.get(one["where"]) or _series(one) for one in found.to_dict("records")],
        unit=found["measure"].map(units),
    )
    source = f"{presets.cited_as(library()[preset.paper])}, {preset.title}"
    printed = _printed(table, columns, relative)
    printed = printed[printed["value"].notna() | printed["row"].isin(mine["row"])]
    return paper_table(printed, mine, _caption(source, table, mine), styles(request))


def _asked(paper: str, table: str) -> tuple[Preset, Table]:
    from core_models.settings import nearest
    from workbench.papers import presets
    from workbench.papers.load import library

    known: dict[str, dict[str, Preset]] = presets.presets(library())
    if paper not in known:
        raise RunError(f"there is no paper {paper!r} to draw from; {nearest(paper, list(known))}")
    if table not in known[paper]:
        raise RunError(f"{paper} has no {table!r}; {nearest(table, list(known[paper]))}")
    preset = known[paper][table]
    if preset.table is None or not presets.columns_with_values(preset.table):
        raise RunError(f"{paper} prints no number in {preset.title}; there is nothing to draw")
    return preset, preset.table


def _columns(keys: Sequence[str], table: Table) -> list[Column]:
    from core_models.settings import nearest
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.papers.presets import columns_with_values

    known = {column.key: column for column in columns_with_values(table)}
    missing = [key for key in keys if key not in known]
    if missing:
        raise RunError(f"{table.id} has no column {missing[0]!r} with numbers; {nearest(missing[0], list(known))}")
    scored = [key for key, column in known.items() if column.measure in METRIC_NAMES]
    return [known[key] for key in keys or scored or known]


def _series(one: Mapping[Any, Any]) -> str:
    """How a number that is of no chosen run is named: an experiment's by data and test set."""
    return f"{one['data']}, {one['test']}" if one["test"] else str(one["where"])


def _units(columns: list[Column], relative: bool) -> dict[str, str]:
    """In which panel, called by its unit, ours of each measure stands: that of the first column with the measure.

    Speeds of ours are ratios to the baseline's, and stand nowhere beside numbers a second; proxies of what people
    counted have panels of their own.
    """
    from workbench.papers.comparison import MEASURE_NAMES
    from workbench.papers.our_measurements import PROXIES

    return {
        column.measure: MEASURE_NAMES[column.measure] if column.measure in PROXIES else unit
        for column in reversed(columns)
        if column.measure
        for unit in [_unit(column, relative)]
        if column.measure not in _TIMES or unit == _TIMES[column.measure]
    }


def _unit(column: Column, relative: bool) -> str:
    return _TIMES[column.measure] if relative and column.measure in _TIMES else column.unit


def _value(table: Table, row: Row, column: Column, relative: bool) -> float | None:
    from workbench.papers import comparison

    as_ratio = relative and column.measure in _TIMES
    return comparison.relative(table, row, column) if as_ratio else float(row.values[column.key])


def _printed(table: Table, columns: list[Column], relative: bool) -> pd.DataFrame:
    """A row for each printed number of the columns, and one without a value for each other row of the table."""
    import pandas as pd

    rows = []
    for row in table.rows:
        place = {"row": row.key, "label": f"{row.label}, {row.cited}" if row.cited else row.label}
        values = [(column, _value(table, row, column, relative)) for column in columns if column.key in row.values]
        rows += [
            {**place, "column": column.label, "unit": _unit(column, relative), "value": value}
            for column, value in values
        ] or [{**place, "column": "", "unit": "", "value": None}]
    return pd.DataFrame(rows).astype({"value": float})


def _caption(source: str, table: Table, ours: pd.DataFrame) -> str:
    from workbench.papers.comparison import origins
    from workbench.papers.our_measurements import PROXIES

    said = f"Hollow: reported in {source} ({table.data}). "
    if ours.empty:
        return said + "Nothing of ours has these systems and measures."
    proxies = ours["measure"].isin(PROXIES).any()
    apart = " What people counted stands apart from our proxies of it by links, another measure." if proxies else ""
    return (
        f"{said}Filled: ours with 95% intervals, of other data than the paper's and no reproduction: "
        f"{origins(ours)}.{apart}"
    )
