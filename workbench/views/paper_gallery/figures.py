"""Figure of a paper's table: reported values, and our values from chosen runs, benchmarks and experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from core_models.resources import data_folder
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

# Relative units of speeds, as in Zheng 2019; speeds of other papers can be converted to them.
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
        False, description="Speeds as ratios to the baseline they are reported for, to compare with ours"
    )


def _files(request: Request, options: PaperTableOptions) -> Iterable[Path]:
    """Files with our results: of the runs, of experiments and of benchmarks."""
    yield from (path for run in request.runs for path in result_files(run, request.test))
    yield from result_tables()


class PaperClaimsOptions(FigureOptions):
    """Options of the figure `paper-claims`."""

    paper: str = Field("", description="The name of a paper in data/papers")


def _tables(request: Request, options: PaperClaimsOptions) -> Iterable[Path]:
    """All of them: which rates count follows from the dev losses, and some differences from pairs."""
    return result_tables()


@figure("paper-claims", scope="runs", options=PaperClaimsOptions, needs_runs=False, depends_on=_tables)
def _paper_claims(request: Request, options: PaperClaimsOptions) -> Figure:
    """What the systems of a paper gain over their baseline, as reported and in our experiments by data set."""
    from core_models.settings import nearest
    from workbench.papers import claims, ledger, presets
    from workbench.papers.load import library
    from workbench.views.paper_gallery.claims_plots import paper_claims

    if not options.paper:
        raise RunError("paper-claims draws a paper; name it: --option paper=NAME")
    if options.paper not in library():
        raise RunError(f"there is no paper {options.paper!r} to draw from; {nearest(options.paper, list(library()))}")
    paper = library()[options.paper]
    reported = claims.reported_gains(paper)
    if reported.empty:
        raise RunError(
            f"{options.paper} reports no score of a system beside a plain backbone; there is nothing to draw"
        )
    measured = claims.measured_gains(paper)
    counted = [place for _, one in measured.groupby("claim") for place in claims.counting(one).index]
    measured = measured.assign(counts=measured.index.isin(counted))
    verdicts = ledger.claim_table(reported, measured)["verdict"]
    caption = (
        f"Hollow: gains reported by {presets.cited_as(paper)}, a dot a table and test set. Filled: differences of our "
        "experiments with 95% intervals (of sentences for one training, else of seeds and sentences), of other data "
        "than the paper's and no reproduction. Faint: what does not count for the verdict (trained at a learning rate "
        "with a higher dev loss, or once where others have several seeds). Every panel has its own axis; the dotted "
        "rule is the baseline."
        f"{_of_panels(dict.fromkeys(measured['data']))}"
    )
    counts = ", ".join(f"{verdict}: {number}" for verdict, number in verdicts.value_counts().items())
    summary = f"{len(verdicts)} gains of a system over its plain model; {counts}."
    return paper_claims(reported, measured, caption, summary)


def _of_panels(experiments: Iterable[str]) -> str:
    """A sentence with the text and the learning rate of each experiment."""
    from workbench.experiments.grid import read_experiment

    by_text: dict[str, list[str]] = {}
    for name in experiments:
        grid = read_experiment(data_folder() / "experiments" / f"{name}.yaml")
        controlled, rate = grid.data.controlled, grid.training.get("learning_rate")
        text = f"{controlled.sentences:,} controlled sentences" if controlled else f"{grid.data.languages} text"
        by_text.setdefault(text, []).append(f"{name} ({rate:g})" if rate else name)
    parts = "; ".join(f"{text}: {', '.join(names)}" for text, names in by_text.items())
    return f" Panels by training text (learning rate): {parts}." if parts else ""


@figure("paper-table", scope="test_set", options=PaperTableOptions, needs_runs=False, depends_on=_files)
def _paper_table(request: Request, options: PaperTableOptions) -> Figure:
    """A table that a paper prints as dots, and ours where a run, a bench or an experiment has it."""
    from workbench.papers import presets
    from workbench.papers.load import library
    from workbench.papers.our_results import our_results
    from workbench.views.paper_gallery.plots import paper_table

    preset, table = _requested(options.paper, options.table)
    columns = _columns(options.columns, table)
    relative = options.relative
    units = _units(columns, relative)
    results = our_results(table, request.runs, request.test)
    results = results[results["measure"].isin(list(units))]
    names = {f"run {name}": short for name, short in short_names(request.runs).items()}
    ours = results.assign(
        series=[names.get(record["where"]) or _series(record) for record in results.to_dict("records")],
        unit=results["measure"].map(units),
    )
    source = f"{presets.cited_as(library()[preset.paper])}, {preset.title}"
    printed = _printed(table, columns, relative)
    printed = printed[printed["value"].notna() | printed["row"].isin(ours["row"])]
    return paper_table(printed, ours, _caption(source, table, ours), styles(request))


def _requested(paper: str, table: str) -> tuple[Preset, Table]:
    from core_models.settings import nearest
    from workbench.papers import presets
    from workbench.papers.load import library

    by_paper: dict[str, dict[str, Preset]] = presets.presets(library())
    if not (paper and table):
        raise RunError("paper-table draws a table of a paper; name both: --option paper=NAME --option table=NAME")
    if paper not in by_paper:
        raise RunError(f"there is no paper {paper!r} to draw from; {nearest(paper, list(by_paper))}")
    if table not in by_paper[paper]:
        raise RunError(f"{paper} has no {table!r}; {nearest(table, list(by_paper[paper]))}")
    preset = by_paper[paper][table]
    if preset.table is None or not presets.columns_with_values(preset.table):
        raise RunError(f"{paper} prints no number in {preset.title}; there is nothing to draw")
    return preset, preset.table


def _columns(keys: Sequence[str], table: Table) -> list[Column]:
    from core_models.settings import nearest
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.papers.presets import columns_with_values

    by_key = {column.key: column for column in columns_with_values(table)}
    missing = [key for key in keys if key not in by_key]
    if missing:
        raise RunError(f"{table.id} has no column {missing[0]!r} with numbers; {nearest(missing[0], list(by_key))}")
    scored = [key for key, column in by_key.items() if column.measure in METRIC_NAMES]
    return [by_key[key] for key in keys or scored or by_key]


def _series(record: Mapping[Any, Any]) -> str:
    """Series name of a result without a chosen run: data and test set of an experiment."""
    return f"{record['data']}, {record['test']}" if record["test"] else str(record["where"])


def _units(columns: list[Column], relative: bool) -> dict[str, str]:
    """Panel (named by its unit) of each of our measures: the panel of the first column with the measure.

    Our speeds are ratios to the baseline, so absolute speeds have no panel for them; proxies of human counts have
    their own panels.
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
    """Reported numbers of the columns, one per row; table rows without numbers get one row without a value."""
    import pandas as pd

    rows = []
    for row in table.rows:
        row_fields = {"row": row.key, "label": f"{row.label}, {row.cited}" if row.cited else row.label}
        values = [(column, _value(table, row, column, relative)) for column in columns if column.key in row.values]
        rows += [
            {**row_fields, "column": column.label, "unit": _unit(column, relative), "value": value}
            for column, value in values
        ] or [{**row_fields, "column": "", "unit": "", "value": None}]
    return pd.DataFrame(rows).astype({"value": float})


def _caption(source: str, table: Table, ours: pd.DataFrame) -> str:
    from workbench.papers.comparison import origins
    from workbench.papers.our_measurements import PROXIES

    reported = f"Hollow: reported in {source} ({table.data}). "
    if ours.empty:
        return reported + "Nothing of ours has these systems and measures."
    proxies = ours["measure"].isin(PROXIES).any()
    proxies_note = (
        " What people counted stands apart from our proxies of it by links, another measure." if proxies else ""
    )
    return (
        f"{reported}Filled: ours with 95% intervals, of other data than the paper's and no reproduction: "
        f"{origins(ours)}.{proxies_note}"
    )
