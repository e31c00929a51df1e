"""workbench evaluate, compare, runs, systems and figure."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.shared import (
    Device,
    RunPaths,
    RunsRoot,
    Settings,
    TestName,
    TestNames,
    app,
    need_folder,
    pairs,
    print_aligned,
    print_table,
    refuse,
)
from workbench.cli.terminal import say
from workbench.cli.translate import Search, search_changes, translate_test_set
from workbench.evaluation.distributed import rank

if TYPE_CHECKING:
    import pandas as pd

    from workbench.evaluation.scoring import Counting
    from workbench.plotting.grammar import Figure
    from workbench.store.runs import Run

TEST = "test"  # the test set of which nobody says another
MOST_INCHES = 100  # of a figure's width


def known_preset(name: str) -> str:
    from analyses.scores import PRESETS
    from core_models.settings import nearest

    if name == "list":
        say("\n".join(f"{known:12} {PRESETS[known].said}" for known in PRESETS))
        raise typer.Exit
    if name not in PRESETS:
        refuse(f"--preset {name!r}: there is none of this name; {nearest(name, list(PRESETS))}")
    return name


Preset = Annotated[
    str,
    typer.Option(
        help="How scores are counted: case, tokeniser, a paper's way; `list` names all",
        callback=known_preset,
        is_eager=True,  # so that `list` needs no runs
    ),
]
Reference = Annotated[int, typer.Option(help="Score against this reference alone, from 1; 0: all together", min=0)]


@app.command()
def evaluate(
    runs: RunPaths,
    test: TestNames = None,
    metrics: str = "bleu,chrf,ter",
    samples: Annotated[int, typer.Option(help="Of the bootstrap", min=1, max=1_000_000)] = 1000,
    processes: Annotated[int, typer.Option(help="That share the scoring of a large test set", min=1, max=1024)] = 1,
    preset: Preset = "default",
    reference: Reference = 0,
    search: Search = None,
    device: Device = "cpu",
) -> None:
    """Score translations of test sets, translating first where that is still to do, or was done with other settings
    than --search asks for. Intervals: 95 % bootstrap."""
    from workbench.evaluation.scoring import Counting
    from workbench.store.runs import open_runs
    from workbench.views.scores.test_sets import score_table

    wanted, changes = known_metrics(metrics), search_changes(search)
    opened, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    for name in tests:
        missing = [Path(run.reference) for run in opened if not _searched_so(run, name, changes)]
        if missing:
            translate_test_set(missing, name, False, device, **changes)
    if rank() == 0:
        print_table(_of(tests, score_table(opened, tests, wanted, samples, processes, Counting(preset, reference))))


def _searched_so(run: Run, test: str, changes: dict[str, Any]) -> bool:
    """Has a run translated a test set, by a search with these settings?"""
    from core_models.config import SearchConfig

    if test not in run.tests():
        return False
    settings = {**SearchConfig().model_dump(), **run.translations(test).meta.get("search", {})}
    return all(settings[key] == value for key, value in changes.items())


def _of(tests: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """The table; of a single test set it need not name it."""
    return table if len(tests) > 1 else table.drop(columns="test")


def known_metrics(text: str) -> list[str]:
    from analyses.scores import METRICS, OPTIONAL
    from core_models.settings import nearest

    found, known = text.split(","), (*METRICS, *OPTIONAL)
    unknown = [name for name in found if name not in known]
    if unknown:
        refuse(f"there is no metric {unknown[0]!r}; {nearest(unknown[0], known)}")
    return found


@app.command()
def compare(
    runs: RunPaths,
    test: TestNames = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline run; the first by default")] = None,
    method: Annotated[
        str, typer.Option(help="bootstrap, randomization, sign or bootstrap-sacrebleu (its rule for p)")
    ] = "bootstrap",
    metrics: str = "bleu",
    preset: Preset = "default",
    reference: Reference = 0,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the scores as a LaTeX table (booktabs) instead")
    ] = False,
) -> None:
    """Test runs against a baseline on the same test sets; p-values also after Holm's correction, over all of them."""
    from workbench.evaluation.scoring import TESTS, Counting
    from workbench.store.runs import open_runs
    from workbench.views.scores.test_sets import comparison_table

    if rank() != 0:
        return  # one process does it all
    if method not in TESTS:
        refuse(f"--method {method!r}: choose {', '.join(TESTS)}")
    if len(runs) < 2:
        refuse(f"{runs[0]} alone cannot be compared; name the baseline and at least one other run")
    opened, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    for name in tests:
        for run in opened:
            run.translations(name)  # which says how it is translated where it is not
    counting, wanted = Counting(preset, reference), known_metrics(metrics)
    found = _of(tests, comparison_table(opened, tests, baseline or opened[0].name, method, wanted, counting))
    if latex:
        say(_latex(opened, tests, wanted, counting, found, baseline or opened[0].name))
    else:
        print_table(found)


def _latex(
    runs: list[Run], tests: list[str], metrics: list[str], counting: Counting, compared: pd.DataFrame, baseline: str
) -> str:
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.export.latex import score_table_latex
    from workbench.views.scores.test_sets import score_table, with_means

    scores = _of(tests, with_means(score_table(runs, tests, metrics, counting=counting)))
    shown, tested = (one.assign(metric=one["metric"].replace(METRIC_NAMES)) for one in (scores, compared))
    return score_table_latex(shown, tested, baseline)


@app.command("runs")
def runs_command(root: RunsRoot = Path("runs")) -> None:
    """List the runs below a folder, broken ones with their reason."""
    from workbench.store.runs import list_runs

    found = list_runs(root)
    if not found:
        say(
            f"there is no run below {root}; make one (workbench demo --runs {shlex.quote(str(root))}), or name another "
            "folder",
            err=True,
        )
    rows = []
    for run in found:
        if run.problem:
            rows.append([run.name, f"broken: {run.problem}"])
        else:
            state = "outside" if run.outside else "trained" if run.trained else "not trained"
            rows.append([run.name, run.system, state, f"tests: {', '.join(run.tests()) or 'none'}"])
    print_aligned(rows)


@app.command()
def systems(
    sizes: Annotated[bool, typer.Option(help="Also count parameters (a vocabulary of 8,000 pieces)")] = False,
) -> None:
    """List the catalogue; change any of them as NAME:key=value,key=value, join their mechanisms as NAME+NAME."""
    from core_models.system_builder import build, parameters
    from core_models.system_catalogue import SYSTEMS, catalogue

    rows = []
    for name in catalogue():
        counts = parameters(build(name)) if sizes else {}
        counted = [f"{key.replace('_', ' ')} {value:,}" for key, value in counts.items()]
        rows.append([name, SYSTEMS[name].title, SYSTEMS[name].paper, *counted])
    print_aligned(rows)


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="What to draw; `workbench figure list` names all. With --rerun: a file")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folders, the baseline first")] = None,
    among: Annotated[
        list[Path] | None,
        typer.Option(help="All runs of the choice that these are of: a run looks as in the other figures of it"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="figure.pdf, .svg, .png, .csv or .json; a folder gets all of them and a .tex"),
    ] = None,
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Counting from 0", min=0)] = 0,
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline run; the first by default")] = None,
    settings: Settings = None,
    width: Annotated[str | None, typer.Option(help="column, page, or inches")] = None,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Draw an exported PDF, SVG, PNG or JSON again from what it says of itself")
    ] = False,
    root: RunsRoot = Path("runs"),
) -> None:
    """Draw what a page shows, into a file; or an exported file again (--rerun), and say if it is still the same."""
    from workbench.figures.drawing import draw
    from workbench.figures.registry import load
    from workbench.figures.request import Request

    if name == "list":
        say("\n".join(load()))
        return
    if rerun:
        if run or among or baseline or (test, sentence) != ("test", 0):
            refuse(
                "--rerun takes runs and options from the file; beside it give --out, --width, --runs only, and --set "
                "for files that it names"
            )
        _draw_again(Path(name), root, out, width, pairs(settings))
        return
    opened, chosen = _opened(run or [], among or [])
    out = out or Path("figure.pdf")
    _check_target(out)
    size = paper_width(width)
    base = _run_named(baseline, [one.name for one in opened]) if baseline else None
    _write_figure(draw(name, Request(opened, test, sentence, base, pairs(settings), chosen)), out, size)


def _opened(runs: list[Path], among: list[Path]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs that are drawn and those that they are chosen among, opened together: names tell all of them apart."""
    from workbench.store.runs import open_runs

    further = [path for path in among if path not in runs]
    opened = open_runs([*runs, *further])
    places = {path: number for number, path in enumerate([*runs, *further])}
    return tuple(opened[: len(runs)]), tuple(opened[places[path]] for path in dict.fromkeys(among))


def paper_width(text: str | None) -> str | float | None:
    """A width of paper as the command line says it."""
    from workbench.plotting.theme import PAPER_WIDTHS

    size = float(text) if text and text.replace(".", "", 1).isdecimal() else text
    if size is not None and size not in PAPER_WIDTHS and not (isinstance(size, float) and 0 < size <= MOST_INCHES):
        refuse(f"--width {text}: write {', '.join(PAPER_WIDTHS)}, or inches up to {MOST_INCHES}")
    return size


def _draw_again(file: Path, root: Path, out: Path | None, width: str | None, files: dict[str, object]) -> None:
    from workbench.export.redraw import draw_again

    if out is not None:
        _check_target(out)
    size = paper_width(width)
    again = draw_again(file, root, files)
    out = out or file.with_name(f"{file.stem}-again{file.suffix}")
    paper = again.made.paper
    _write_figure(again.drawn.figure, out, paper.width if size is None else size, paper.grey)
    say(f"{file}: {again.said}")


def _check_target(out: Path) -> None:
    from workbench.export.files import DRAWN, WRITTEN, check_folder

    if out.suffix and out.suffix.lower() not in (*DRAWN, *WRITTEN):
        refuse(f"--out {out}: a figure is written as {', '.join((*DRAWN, *WRITTEN))}, or into a folder; choose one")
    if out.suffix:
        need_folder(out, "--out")
    else:
        check_folder(out)


def _run_named(wanted: str, names: list[str]) -> str:
    """The name among those of the runs that is meant: a page knows a run by more of its path than a command does."""
    found = [name for name in names if name == wanted or wanted.endswith(f"/{name}")]
    return found[0] if found else refuse(f"--baseline {wanted}: it is not among the runs: {', '.join(names)}")


def _write_figure(drawn: Figure, out: Path, size: str | float | None, grey: bool = False) -> None:
    from workbench.export.files import bundle, save

    written = [save(drawn, out, size, grey)] if out.suffix else bundle(drawn, out, size, grey)
    say("\n".join(map(str, written)))
