"""workbench adequacy, data train-aligner: coverage and its errors by one frozen word aligner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.numbers import Resamples
from workbench.cli.shared import RunPaths, TestName, app, data_app, print_table, refuse
from workbench.cli.terminal import say


@data_app.command("train-aligner")
def data_train_aligner(
    source: Annotated[Path, typer.Option(help="File of source sentences, one per line")],
    target: Annotated[Path, typer.Option(help="File of their translations, one per line")],
    out: Annotated[Path, typer.Option(help="File to write, .npz")],
    iterations: Annotated[int, typer.Option(help="EM iterations", min=1)] = 5,
) -> None:
    """Train a word aligner on parallel text and freeze it, for the measures of adequacy."""
    from core_models.text.parallel import read_parallel
    from workbench.evaluation.adequacy import train_aligner

    if out.suffix != ".npz" or not out.parent.is_dir():
        refuse(f"--out {out}: name a .npz file in a folder that is there")
    text = read_parallel(source, target)
    aligner = train_aligner(text.sources, text.targets or [], iterations)
    aligner.save(out)
    say(f"{out}: {len(aligner.source_words)} source and {len(aligner.target_words)} target words, {aligner.digest}")


@app.command()
def adequacy(
    runs: RunPaths,
    test: TestName = "test",
    aligner: Annotated[
        Path | None, typer.Option(help="File of a frozen aligner; by default one is trained on the runs' training text")
    ] = None,
    n_resamples: Resamples = 1000,
    towards: Annotated[
        str, typer.Option(help="Reference set of several references: first, or union for any of them")
    ] = "first",
) -> None:
    """Measure coverage (CDR), under- and over-translation of the source, by one frozen aligner for all runs."""
    from workbench.evaluation.adequacy import adequacy_table, aligner_of
    from workbench.store.runs import open_runs

    opened = open_runs(runs)
    frozen, origin = aligner_of(opened, test, aligner)
    say(f"aligner {frozen.digest}, {origin}", err=True)
    print_table(adequacy_table(opened, test, frozen, n_resamples, towards))
