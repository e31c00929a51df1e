"""workbench figure: draw figures, list them, and draw exported files again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.groups import App, Group
from workbench.cli.shared import (
    BaselineName,
    FigureOptions,
    Files,
    NamingCommand,
    RunsRoot,
    TestName,
    app,
    baseline_name,
    need_folder,
    need_runs,
    pairs,
    print_aligned,
    print_options,
    refuse,
)
from workbench.cli.terminal import say

if TYPE_CHECKING:
    from workbench.figures.registry import FigureSpec
    from workbench.plotting.grammar import Figure, Font
    from workbench.store.runs import Run

MOST_INCHES = 100  # of a figure's width


class FigureGroup(Group):
    default = "draw"


Width = Annotated[str | None, typer.Option(help="Width on paper: column, page, or a number of inches")]
FontName = Annotated[str | None, typer.Option("--font", help="Font on paper: sans, times or computer-modern")]

figure_app = App(FigureGroup, help="Draw a figure of runs (`workbench figure NAME`), or an exported file again.")
app.add_typer(figure_app, name="figure")


class DrawCommand(NamingCommand):
    """workbench figure draw."""

    def spec_of(self, name: str) -> FigureSpec:
        from workbench.figures.registry import spec_of

        return spec_of(name)


@figure_app.command("draw", cls=DrawCommand)
def figure_draw(
    name: Annotated[str, typer.Argument(help="Name of the figure; `workbench figure list` names all")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folder, the baseline first; may be repeated")] = None,
    palette_runs: Annotated[
        list[Path] | None,
        typer.Option(help="Run folder that counts when colors are assigned, so that figures agree; may be repeated"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .pdf, .svg, .png, .csv or .json; a folder gets all of them and a .tex; by default "
            "NAME.pdf"
        ),
    ] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Number of the sentence, from 0", min=0)] = 0,
    baseline: BaselineName = None,
    option: FigureOptions = None,
    width: Width = None,
    font: FontName = None,
) -> None:
    """Draw what a page shows, into a file; the word `draw` may be left out."""
    from workbench.figures.drawing import draw
    from workbench.figures.registry import spec_of
    from workbench.figures.request import Request

    size, typeface = paper_width(width), _font(font)
    out = out or Path(f"{name}.pdf")
    _check_target(out)
    if spec_of(name).needs_runs:
        need_runs(run)
    opened, chosen = _opened(run or [], palette_runs or [])
    base = baseline_name(baseline, run or [], opened) if baseline else None
    drawn = draw(name, Request(opened, test, sentence, base, pairs(option, "--option"), chosen))
    _write_figure(replace(drawn, font=typeface or drawn.font), out, size)


@figure_app.command("list")
def figure_list() -> None:
    """List the figures, and what each shows."""
    from workbench.figures.registry import load

    print_aligned([[name, spec.summary] for name, spec in load().items()])


@figure_app.command("show")
def figure_show(
    name: Annotated[str, typer.Argument(help="Name of the figure; `workbench figure list` names all")],
) -> None:
    """List the options of a figure: what each may be, its default, and what it does."""
    from workbench.figures.registry import spec_of

    print_options(spec_of(name))


@figure_app.command("redraw")
def figure_redraw(
    file: Annotated[Path, typer.Argument(help="Exported PDF, SVG, PNG or JSON file")],
    out: Annotated[
        Path | None, typer.Option(help="File or folder to write; by default FILE-again beside the file")
    ] = None,
    files: Files = None,
    width: Width = None,
    font: FontName = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; end with status 1 if the figure's table has changed")
    ] = False,
    root: RunsRoot = Path("runs"),
) -> None:
    """Draw an exported figure again from what it says of itself, and say whether its table is still the same."""
    from workbench.export.redraw import draw_again

    if out is not None:
        _check_target(out)
    size, typeface = paper_width(width), _font(font)
    again = draw_again(file, root, pairs(files, "--file"))
    if not check:
        paper = again.made.paper
        out = out or file.with_name(f"{file.stem}-again{file.suffix}")
        drawn = replace(again.drawn.figure, font=typeface or paper.font)
        _write_figure(drawn, out, paper.width if size is None else size, paper.grey)
    say(f"{file}: {again.message}")
    if check and not again.same:
        raise typer.Exit(1)


def _opened(runs: list[Path], palette: list[Path]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The drawn runs and the palette runs, opened together so that all have different names."""
    from workbench.store.runs import open_runs

    further = [path for path in palette if path not in runs]
    opened = open_runs([*runs, *further])
    positions = {path: number for number, path in enumerate([*runs, *further])}
    return tuple(opened[: len(runs)]), tuple(opened[positions[path]] for path in dict.fromkeys(palette))


def paper_width(text: str | None) -> str | float | None:
    """Parse a paper width of the command line."""
    from workbench.plotting.theme import PAPER_WIDTHS

    size = float(text) if text and text.replace(".", "", 1).isdecimal() else text
    if size is not None and size not in PAPER_WIDTHS and not (isinstance(size, float) and 0 < size <= MOST_INCHES):
        refuse(f"--width {text}: write {', '.join(PAPER_WIDTHS)}, or inches up to {MOST_INCHES}")
    return size


def _font(text: str | None) -> Font | None:
    """Parse a font of the command line; None if none is named."""
    from core_models.settings import nearest
    from workbench.plotting.fonts import FONT_NAMES

    for font in FONT_NAMES:
        if text == font:
            return font
    return None if text is None else refuse(f"--font {text}: {nearest(text, list(FONT_NAMES))}")


def _check_target(out: Path) -> None:
    from workbench.export.files import DRAWN, WRITTEN, check_folder

    if out.suffix and out.suffix.lower() not in (*DRAWN, *WRITTEN):
        refuse(f"--out {out}: a figure is written as {', '.join((*DRAWN, *WRITTEN))}, or into a folder; choose one")
    if out.suffix:
        need_folder(out, "--out")
    else:
        check_folder(out)


def _write_figure(drawn: Figure, out: Path, size: str | float | None, grey: bool = False) -> None:
    from workbench.export.files import WRITTEN, bundle, save
    from workbench.plotting.fonts import substitution_note

    written = [save(drawn, out, size, grey)] if out.suffix else bundle(drawn, out, size, grey)
    say("\n".join(map(str, written)))
    if out.suffix.lower() not in WRITTEN and (note := substitution_note(drawn)):
        say(note, err=True)
