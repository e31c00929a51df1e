"""workbench export bundle and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.shared import Files, RunsRoot, TestName, export_app, need_folder, pairs, refuse
from workbench.cli.terminal import say

if TYPE_CHECKING:
    from workbench.figures.from_spec import DrawnFigure

CollectionFile = Annotated[
    Path | None,
    typer.Option(help="File of a figure collection, or a bundle's manifest.json; by default that of the runs folder"),
]


@export_app.command("bundle")
def export_bundle(
    out: Annotated[Path, typer.Argument(help="Folder or .zip file to write")],
    collection: CollectionFile = None,
    root: RunsRoot = Path("runs"),
    venue: Annotated[str, typer.Option(help="Venue with its column and page widths: ACL, TACL, AAAI or IJCAI")] = "ACL",
    file: Files = None,
) -> None:
    """Write every figure of the collection for a paper: PDF, SVG, PNG, CSV, JSON, a TeX snippet, a manifest."""
    from core_models.settings import nearest
    from workbench.export.bundle import VENUES, check_folder, write_bundle

    if venue.upper() not in VENUES:
        refuse(f"--venue {venue}: there is none of this name; {nearest(venue, list(VENUES))}")
    need_folder(out)
    check_folder(out)
    written = write_bundle(_drawn(collection, root, file), out, venue.upper())
    say("\n".join(map(str, written)))


@export_app.command("report")
def export_report(
    out: Annotated[Path, typer.Argument(help="File to write, .html")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folder, the baseline first; may be repeated")] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Number of the sentence whose beam trees are shown, from 0", min=0)] = 0,
    collection: CollectionFile = None,
    root: RunsRoot = Path("runs"),
    title: Annotated[str, typer.Option(help="Title of the report")] = "NMT workbench report",
    file: Files = None,
) -> None:
    """Write one HTML file on runs: configuration, scores with tests, figures. It opens without any network.

    The figures are those of --collection, else scores, length buckets, training curves and one sentence's beam trees.
    """
    from core_models.files.atomic_files import write_atomic
    from core_models.settings import nearest
    from workbench.export import report as reports
    from workbench.figures.request import Request
    from workbench.store.runs import open_runs

    if out.suffix.lower() not in (".html", ".htm"):
        refuse(f"{out}: a report is an .html file; give it this ending")
    need_folder(out)
    drawn = _drawn(collection, root, file) if collection else []
    opened = open_runs(run) if run else reports.runs_of(drawn)
    if not opened:
        refuse("no run is chosen; name at least one (--run), or a collection (--collection)")
    left_out: list[str] = []
    known = sorted({name for one in opened for name in one.tests()})
    if not collection and known and test not in known:
        refuse(f"--test {test}: none of the runs has translated it; {nearest(test, known)}")
    if not collection:
        drawn, left_out = reports.default_figures(Request(tuple(opened), test, sentence))
    say("".join(f"left out: {message}\n" for message in left_out), nl=False, err=True)
    say(write_atomic(out, reports.report(title, opened, test, drawn, left_out)))


def _drawn(collection: Path | None, root: Path, named: list[str] | None) -> list[DrawnFigure]:
    from workbench.export.collection import file_of, read
    from workbench.figures import from_spec

    path = collection or file_of(root)
    recipes = read(path)
    if not recipes:
        refuse(f"{path}: there is no figure in it; add figures on their pages, or name another file (--collection)")
    files = pairs(named, "--file")
    from_spec.check_files(recipes, files)
    return [from_spec.draw(recipe, root, files=files) for recipe in recipes]
