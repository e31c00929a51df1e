"""workbench analyze: an analysis of runs as a table, ours or one that another package brings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import FigureOptions, TestName, app, need_folder, pairs
from workbench.cli.terminal import say


@app.command()
def analyze(
    name: Annotated[str, typer.Argument(help="Name of the analysis; `workbench analyze list` names all")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folder, the baseline first; may be repeated")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write, .csv; by default the table is printed")] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Number of the sentence, from 0", min=0)] = 0,
    option: FigureOptions = None,
) -> None:
    """Compute an analysis of runs and write its table as CSV."""
    from core_models.files.atomic_files import write_atomic
    from workbench.figures import table_registry
    from workbench.figures.request import Request
    from workbench.store.csv_cells import csv_text
    from workbench.store.runs import open_runs

    if name == "list":
        for known, function in table_registry.analyses().items():
            say(f"{known:24} {' '.join((function.__doc__ or '').split())}".rstrip())
        return
    need_folder(out, "--out")
    request = Request(tuple(open_runs(run or [])), test, sentence, options=pairs(option, "--option"))
    table = csv_text(table_registry.analyze(name, request))
    if out is None:
        say(table, nl=False)
    else:
        say(write_atomic(out, table))
