"""The drawing of a paper's table: what it prints, and ours where a chosen run or an experiment has it.

Options: `paper` and `table` by the names of `data/papers`, and `columns` (keys; those with a metric of ours unless
told, or all where there is none). Without a run, results of experiments stand beside what is printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.drawing import Request, drawing, short_names, styles
from workbench.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures.grammar import Figure
    from workbench.papers.presets import Preset
    from workbench.papers.reading import Column, Table

_OPTIONS = ("paper", "table", "columns")


@drawing("paper-table", without_runs=True)
def _paper_table(request: Request) -> Figure:
    from workbench.figures.papers import paper_table
    from workbench.papers import presets
    from workbench.papers.reading import library

    preset, table = _asked(request)
    columns = _columns(request, table)
    found = presets.ours(table, request.runs, request.test)
    # Where two units of a table have the same metric, ours stands in the panel of the first.
    units = {presets.metric_of(column): column.unit for column in reversed(columns)}
    found = found[found["metric"].isin(list(units))]
    names = {f"run {name}": short for name, short in short_names(request.runs).items()}
    series = [
        names.get(one["where"], f"{one['data']}, {one['test']}") for one in found.to_dict("records")
    ]  # an experiment has no run to be named by
    mine = found.assign(series=series, unit=found["metric"].map(units))
    source = f"{presets.cited_as(library()[preset.paper])}, {preset.title}"
    printed = _printed(table, columns)
    printed = printed[printed["value"].notna() | printed["row"].isin(mine["row"])]
    return paper_table(printed, mine, _caption(source, table, mine), styles(request))


def _asked(request: Request) -> tuple[Preset, Table]:
    from core_models.config import nearest
    from workbench.papers import presets
    from workbench.papers.reading import library

    unknown = sorted(set(request.options) - set(_OPTIONS))
    if unknown:
        raise RunError(f"there is no option {unknown[0]!r}; there is {', '.join(_OPTIONS)}")
    known: dict[str, dict[str, Preset]] = presets.presets(library())
    paper, table = (str(request.options.get(name, "")) for name in ("paper", "table"))
    if paper not in known:
        raise RunError(f"there is no paper {paper!r} to draw from; {nearest(paper, list(known))}")
    if table not in known[paper]:
        raise RunError(f"{paper} has no {table!r}; {nearest(table, list(known[paper]))}")
    preset = known[paper][table]
    if preset.table is None or not presets.columns_with_values(preset.table):
        raise RunError(f"{paper} prints no number in {preset.title}; there is nothing to draw")
    return preset, preset.table


def _columns(request: Request, table: Table) -> list[Column]:
    from core_models.config import nearest
    from workbench.papers.presets import columns_with_values, metric_of

    known = {column.key: column for column in columns_with_values(table)}
    asked = request.options.get("columns") or ()
    keys = asked.split(",") if isinstance(asked, str) else list(asked)
    missing = [key for key in keys if key not in known]
    if missing:
        raise RunError(f"{table.id} has no column {missing[0]!r} with numbers; {nearest(missing[0], list(known))}")
    scored = [key for key, column in known.items() if metric_of(column)]
    return [known[key] for key in keys or scored or known]


def _printed(table: Table, columns: list[Column]) -> pd.DataFrame:
    """A row for each printed number of the columns, and one without a value for each other row of the table."""
    import pandas as pd

    rows = []
    for row in table.rows:
        place = {"row": row.key, "label": f"{row.label}, {row.cited}" if row.cited else row.label}
        values = [(column, row.values[column.key]) for column in columns if column.key in row.values]
        rows += [
            {**place, "column": column.label, "unit": column.unit, "value": float(value)} for column, value in values
        ] or [{**place, "column": "", "unit": "", "value": None}]
    return pd.DataFrame(rows).astype({"value": float})


def _caption(source: str, table: Table, ours: pd.DataFrame) -> str:
    from workbench.papers.presets import origins

    said = f"Hollow: printed in {source} ({table.data}). "
    if ours.empty:
        return said + "Nothing of ours has these systems and metrics."
    return (
        f"{said}Filled: ours with 95 % intervals, of other data than the paper's and no reproduction: {origins(ours)}."
    )
