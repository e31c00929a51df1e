"""workbench aligner, adequacy, true-choices, true-adequacy: what a frozen aligner and the truth say of translations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import RunPaths, TestName, app, print_table, refuse
from workbench.cli.terminal import say


@app.command()
def aligner(
    source: Annotated[Path, typer.Option(help="Source sentences, a line each")],
    target: Annotated[Path, typer.Option(help="Their translations")],
    out: Annotated[Path, typer.Option(help="The file to write, .npz")],
    iterations: Annotated[int, typer.Option(min=1)] = 5,
) -> None:
    """Train a word aligner on parallel text and freeze it, for the measures of adequacy."""
    from core_models.text.parallel import read_parallel
    from workbench.evaluation.adequacy import train_aligner

    if out.suffix != ".npz" or not out.parent.is_dir():
        refuse(f"--out {out}: name a .npz file in a folder that is there")
    text = read_parallel(source, target)
    found = train_aligner(text.sources, text.targets or [], iterations)
    found.save(out)
    say(f"{out}: {len(found.source_words)} source and {len(found.target_words)} target words, {found.digest}")


@app.command()
def adequacy(
    runs: RunPaths,
    test: TestName = "test",
    aligner: Annotated[
        Path | None, typer.Option(help="A frozen aligner; by default one is trained on the runs' training text")
    ] = None,
    samples: Annotated[int, typer.Option(help="Of the bootstrap", min=1, max=1_000_000)] = 1000,
    towards: Annotated[
        str, typer.Option(help="Of several references: the first, or union, what any of them covers")
    ] = "first",
) -> None:
    """How much of the source translations cover (CDR), leave out and say twice, by one frozen aligner for all runs."""
    from workbench.evaluation.adequacy import adequacy_table, aligner_of
    from workbench.store.runs import open_runs

    opened = open_runs(runs)
    found, origin = aligner_of(opened, test, aligner)
    say(f"aligner {found.digest}, {origin}", err=True)
    print_table(adequacy_table(opened, test, found, samples, towards))


@app.command("true-choices")
def true_choices(
    runs: RunPaths,
    test: TestName = "test",
    by: Annotated[str | None, typer.Option(help="Split by distance, for one")] = None,
) -> None:
    """Of the controlled corpus: how many pronouns are right, and how often a first word gets what it forces."""
    from workbench.store.runs import open_runs
    from workbench.views.adequacy.controlled_choices import choices_table

    print_table(choices_table(open_runs(runs), test, by))


@app.command("true-adequacy")
def true_adequacy(
    runs: RunPaths,
    test: TestName = "test",
    scheme: Annotated[str, typer.Option(help="Of the buckets of source length")] = "short",
    baseline: Annotated[str | None, typer.Option(help="The run that differences are to; the first unless told")] = None,
    over_seeds: Annotated[
        bool, typer.Option(help="Runs of a system are its seeds: means and tests over them, of all lengths")
    ] = False,
) -> None:
    """Of the controlled corpus: source words that translations leave out and words they repeat, by source length."""
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
