"""workbench controlled: accuracy on the controlled corpus, by its known truth."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli.groups import App
from workbench.cli.shared import RunPaths, TestName, app, print_table, refuse

controlled_app = App(help="Evaluate translations of the controlled corpus by its known truth.")
app.add_typer(controlled_app, name="controlled")


@controlled_app.command("pronouns")
def controlled_pronouns(
    runs: RunPaths,
    test: TestName = "test",
    by: Annotated[str | None, typer.Option(help="Tag to split the table by, e.g. distance")] = None,
) -> None:
    """Measure pronoun accuracy, and how often a first word is followed by what it forces."""
    from workbench.store.runs import open_runs
    from workbench.views.adequacy.controlled_choices import choices_table

    print_table(choices_table(open_runs(runs), test, by))


@controlled_app.command("coverage")
def controlled_coverage(
    runs: RunPaths,
    test: TestName = "test",
    scheme: Annotated[str, typer.Option(help="Bucket scheme of source lengths")] = "short",
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline run; the first by default")] = None,
    over_seeds: Annotated[
        bool, typer.Option(help="Treat runs of a system as its seeds: means and tests over them, over all lengths")
    ] = False,
) -> None:
    """Measure under- and over-translated words, by source length."""
    from workbench.store.runs import open_runs
    from workbench.views.adequacy.word_coverage import exact_table, over_seeds_table

    opened = open_runs(runs)
    if over_seeds:
        if baseline is not None or scheme != "short":
            refuse("--over-seeds takes all lengths as one and the first run's system as the baseline: give it alone")
        print_table(over_seeds_table(opened, test))
        return
    names = [run.name for run in opened]
    if baseline not in (None, *names):
        refuse(f"--baseline {baseline}: it is none of the runs; choose one of {', '.join(names)}")
    print_table(exact_table(opened, test, baseline or names[0], scheme))
