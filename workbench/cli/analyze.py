"""workbench analyze: an analysis of runs as a table, ours or one that another package brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.groups import App, Group
from workbench.cli.shared import (
    FigureOptions,
    NamingCommand,
    TestName,
    app,
    need_folder,
    need_runs,
    pairs,
    print_aligned,
    print_options,
)
from workbench.cli.terminal import say

if TYPE_CHECKING:
    from workbench.figures.table_registry import AnalysisSpec


class AnalyzeGroup(Group):
    default = "compute"


analyze_app = App(AnalyzeGroup, help="Compute an analysis of runs (`workbench analyze NAME`), or list them.")
app.add_typer(analyze_app, name="analyze")


class ComputeCommand(NamingCommand):
    """workbench analyze compute."""

    def spec_of(self, name: str) -> AnalysisSpec:
        from workbench.figures.table_registry import spec_of

        return spec_of(name)


@analyze_app.command("compute", cls=ComputeCommand)
def analyze_compute(
    name: Annotated[str, typer.Argument(help="Name of the analysis; `workbench analyze list` names all")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folder, the baseline first; may be repeated")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write, .csv; by default the table is printed")] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Number of the sentence, from 0", min=0)] = 0,
    option: FigureOptions = None,
) -> None:
    """Compute an analysis of runs and write its table as CSV; the word `compute` may be left out."""
    from core_models.files.atomic_files import write_atomic
    from workbench.figures.request import Request
    from workbench.figures.table_registry import analyze, spec_of
    from workbench.store.csv_cells import csv_text
    from workbench.store.runs import open_runs

    need_folder(out, "--out")
    spec_of(name)  # a wrong name is said first
    need_runs(run)
    request = Request(tuple(open_runs(run or [])), test, sentence, options=pairs(option, "--option"))
    table = csv_text(analyze(name, request))
    if out is None:
        say(table, nl=False)
    else:
        say(write_atomic(out, table))


@analyze_app.command("list")
def analyze_list() -> None:
    """List the analyses, and what the table of each holds."""
    from workbench.figures.table_registry import analyses

    print_aligned([[name, spec.summary] for name, spec in analyses().items()])


@analyze_app.command("show")
def analyze_show(
    name: Annotated[str, typer.Argument(help="Name of the analysis; `workbench analyze list` names all")],
) -> None:
    """List the options of an analysis: what each may be, its default, and what it does."""
    from workbench.figures.table_registry import spec_of

    print_options(spec_of(name))
