"""workbench bundle and report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import RunsRoot, TestName, app, refuse

BasketFile = Annotated[
    Path | None, typer.Option(help="A basket, or the manifest.json of a bundle; that of the runs folder by default")
]


@app.command()
def bundle(
    out: Annotated[Path, typer.Argument(help="A folder, or a .zip")],
    basket: BasketFile = None,
    root: RunsRoot = Path("runs"),
    venue: Annotated[str, typer.Option(help="Whose column and page widths: ACL, TACL, AAAI or IJCAI")] = "ACL",
) -> None:
    """Write every figure of the basket for a paper: PDF, SVG, PNG, CSV, JSON, a TeX snippet, a manifest."""
    from core_models.config import nearest
    from workbench import recipe
    from workbench.export.bundle import VENUES, write_bundle

    if venue.upper() not in VENUES:
        refuse(f"--venue {venue}: there is none of this name; {nearest(venue, list(VENUES))}")
    _check_parent(out)
    wanted = _recipes(basket, root)
    written = write_bundle([recipe.draw(one, root) for one in wanted], out, venue.upper())
    typer.echo("\n".join(map(str, written)))


@app.command()
def report(
    out: Annotated[Path, typer.Argument(help="The .html file to write")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folders, the baseline first")] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Whose beam trees are shown, counting from 0")] = 0,
    basket: BasketFile = None,
    root: RunsRoot = Path("runs"),
    title: Annotated[str, typer.Option(help="What stands above")] = "NMT workbench report",
) -> None:
    """Write one HTML file on runs: configuration, scores with tests, figures. It opens without any network.

    The figures are those of --basket, else scores, length buckets, training curves and the beam trees of one sentence.
    """
    from workbench import recipe
    from workbench.drawing import Request
    from workbench.export import report as reports
    from workbench.export.files import write
    from workbench.runs import open_runs

    if out.suffix.lower() not in (".html", ".htm"):
        refuse(f"{out}: a report is an .html file; give it this ending")
    _check_parent(out)
    drawn = [recipe.draw(one, root) for one in _recipes(basket, root)] if basket else []
    opened = open_runs(run) if run else reports.runs_of(drawn)
    if not opened:
        refuse("no run is chosen; name at least one (--run), or a basket (--basket)")
    left_out: list[str] = []
    if not basket:
        drawn, left_out = reports.usual_figures(Request(tuple(opened), test, sentence))
    typer.echo("".join(f"left out: {said}\n" for said in left_out), nl=False, err=True)
    typer.echo(write(out, reports.report(title, opened, test, drawn, left_out).encode()))


def _recipes(basket: Path | None, root: Path) -> list:
    from workbench.basket import file_of, read

    path = basket or file_of(root)
    found = read(path)
    if not found:
        refuse(f"{path}: there is no figure in it; add figures on their pages, or name another file (--basket)")
    return found


def _check_parent(out: Path) -> None:
    if not out.absolute().parent.is_dir():
        refuse(f"{out}: there is no folder {out.parent}; make it, or name another")
