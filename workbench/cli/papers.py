"""workbench experiment papers: what the papers print, and what their own numbers give."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli.shared import experiment_app, print_table
from workbench.cli.terminal import say


@experiment_app.command("papers")
def experiment_papers(
    paper: Annotated[str | None, typer.Argument(help="Name of a paper in the list; its tables are printed")] = None,
    checks: Annotated[
        bool, typer.Option("--checks", help="Compare reported numbers with what can be recomputed from them")
    ] = False,
) -> None:
    """List the papers and their tables, print those of one, or check reported numbers against each other."""
    import pandas as pd

    from core_models.settings import ConfigError, nearest
    from workbench.papers.arithmetic_checks import check_table
    from workbench.papers.load import library

    known = library()
    if paper is not None and paper not in known:
        raise ConfigError(f"there is no paper {paper!r}; {nearest(paper, list(known))}")
    if checks:
        checked = check_table(known)[["paper", "what", "reported", "recomputed", "agrees", "known", "note"]]
        print_table(checked if paper is None else checked[checked["paper"] == paper])
    elif paper is None:
        rows = [
            (name, paper_tables.heading.name, table.id, table.what)
            for name, paper_tables in known.items()
            for table in paper_tables.tables
        ]
        print_table(pd.DataFrame(rows, columns=["paper", "name", "table", "what"]))
    else:
        for table in known[paper].tables:
            say(f"{table.id}: {table.what} ({table.data})")
            shown = table.printed()
            print_table(shown.loc[:, (shown != "").any()])
