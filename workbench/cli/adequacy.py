"""workbench adequacy, data train-aligner: under- and over-translation by a word aligner, or by the known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.groups import App, Group
from workbench.cli.numbers import Resamples
from workbench.cli.shared import BaselineName, RunPaths, TestName, app, baseline_name, data_app, print_table, refuse
from workbench.cli.terminal import say


class AdequacyGroup(Group):
    default = "compute"


adequacy_app = App(AdequacyGroup, help="Measure coverage, under- and over-translation (`workbench adequacy RUN …`).")
app.add_typer(adequacy_app, name="adequacy")


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


@adequacy_app.command("compute")
def adequacy_compute(
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
    """Measure coverage (CDR), under- and over-translation by one frozen aligner; `compute` may be left out."""
    from workbench.evaluation.adequacy import adequacy_table, aligner_of
    from workbench.store.runs import open_runs

    opened = open_runs(runs)
    frozen, origin = aligner_of(opened, test, aligner)
    say(f"aligner {frozen.digest}, {origin}", err=True)
    print_table(adequacy_table(opened, test, frozen, n_resamples, towards))


@adequacy_app.command("pronouns")
def adequacy_pronouns(
    runs: RunPaths,
    test: TestName = "test",
    by: Annotated[
        str | None, typer.Option(help="Column to split the table by: distance, or reach (far ones together)")
    ] = None,
) -> None:
    """Measure pronoun accuracy on the controlled corpus, and how often a first word is followed by what it forces."""
    from workbench.store.runs import open_runs
    from workbench.views.adequacy.controlled_choices import choices_table

    print_table(choices_table(open_runs(runs), test, by))


@adequacy_app.command("coverage")
def adequacy_coverage(
    runs: RunPaths,
    test: TestName = "test",
    scheme: Annotated[
        str, typer.Option(help="Groups of source lengths in words: short, tens, width:N or quantiles:N")
    ] = "short",
    baseline: BaselineName = None,
    over_seeds: Annotated[
        bool, typer.Option(help="Treat runs of a system as its seeds: means and tests over them, over all lengths")
    ] = False,
) -> None:
    """Measure under- and over-translated words by the controlled corpus's truth, by source length."""
    from workbench.store.runs import open_runs
    from workbench.views.adequacy.word_coverage import exact_table, over_seeds_table

    opened = open_runs(runs)
    if over_seeds:
        if baseline is not None or scheme != "short":
            refuse("--over-seeds takes all lengths as one and the first run's system as the baseline: give it alone")
        print_table(over_seeds_table(opened, test))
        return
    print_table(exact_table(opened, test, baseline_name(baseline, runs, opened), scheme))
