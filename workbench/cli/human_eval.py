"""workbench rating: blind human ratings; studies, forms, results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.groups import App
from workbench.cli.numbers import Resamples, Seed
from workbench.cli.shared import RunsRoot, TestName, app, need_folder, print_table
from workbench.cli.terminal import say

rating_app = App(help="Blind human ratings of translations.")
app.add_typer(rating_app, name="rating")

StudyName = Annotated[str, typer.Argument(help="Name of the study; `workbench rating list` names all")]


@rating_app.command("list")
def rating_list(root: RunsRoot = Path("runs")) -> None:
    """List the studies and who has rated in them."""
    from workbench.store.rating_studies import open_study, studies

    for name in studies(root):
        study = open_study(root, name)
        raters = ", ".join(study.raters) or "none"
        say(f"{name:24} {len(study.items)} sentences of {study.test}, raters: {raters}")


@rating_app.command("new")
def rating_new(
    name: Annotated[str, typer.Argument(help="Name of the study")],
    run: Annotated[list[Path], typer.Option(help="Run folder to compare; may be repeated")],
    test: TestName = "test",
    sentences: Annotated[int, typer.Option(help="Number of sentences, sampled without replacement", min=1)] = 100,
    seed: Seed = 1,
    reference: Annotated[bool, typer.Option("--reference", help="Show the reference to raters")] = False,
    root: RunsRoot = Path("runs"),
) -> None:
    """Create a study: sample sentences of a test set. Raters rate them in the app, on the page Human rating."""
    from workbench.store.rating_studies import create
    from workbench.store.runs import open_runs

    study = create(root, name, open_runs(run), test, sentences, seed, reference)
    say(f"{study.folder}: {len(study.items)} sentences of {test}, {len(study.systems)} systems")


@rating_app.command("export")
def rating_export(
    name: StudyName,
    out: Annotated[Path, typer.Option(help="File to write, .csv")] = Path("ratings.csv"),
    form: Annotated[
        str | None, typer.Option(help="Name of a rater: write the form to fill in, with letters for systems")
    ] = None,
    root: RunsRoot = Path("runs"),
) -> None:
    """Write the ratings with the names of systems, or with --form what a rater has to fill in."""
    from core_models.files.atomic_files import write_atomic
    from workbench.store.csv_cells import csv_text
    from workbench.store.rating_studies import open_study
    from workbench.views.human_evaluation.tables import export
    from workbench.views.human_evaluation.tables import form as form_table

    need_folder(out, "--out")
    study = open_study(root, name)
    table = export(study) if form is None else form_table(study, form)
    write_atomic(out, csv_text(table))
    say(f"{out}: {len(table)} rows")


@rating_app.command("import")
def rating_import(
    name: StudyName,
    file: Annotated[Path, typer.Argument(help="File of ratings, .csv, as export writes it")],
    root: RunsRoot = Path("runs"),
) -> None:
    """Import ratings from a CSV file: a form that was filled in, or an export; all of it or nothing."""
    from workbench.store.rating_studies import open_study
    from workbench.views.human_evaluation.tables import bring_in

    counts = bring_in(open_study(root, name), file, str(file))
    for rater, count in counts.items():
        say(f"{rater}: {count} ratings")
    if not counts:
        say(f"{file}: nothing is imported, since no line has a quality")


@rating_app.command("results")
def rating_results(
    name: StudyName,
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline system; the first by default")] = None,
    n_resamples: Resamples = 1000,
    root: RunsRoot = Path("runs"),
) -> None:
    """Unblind: scores of the systems with intervals, differences to the baseline, agreement of the raters."""
    from workbench.store.rating_studies import open_study
    from workbench.views.human_evaluation.tables import results

    tables = results(open_study(root, name), baseline, n_resamples)
    say(tables.counted, err=True)
    print_table(tables.intervals)
    if tables.differences is not None:
        print_table(tables.differences)
    print_table(tables.agreement)
