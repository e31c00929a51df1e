"""Shared parts of the commands: Typer apps, common options, progress bars, tables, refusals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol

import typer

from workbench.cli.groups import App, Group
from workbench.cli.numbers import Command
from workbench.cli.terminal import printable_cell, say
from workbench.evaluation.distributed import rank

if TYPE_CHECKING:
    from workbench.figures.registry import FigureSpec
    from workbench.figures.table_registry import AnalysisSpec
    from workbench.store.runs import Run


class RunsGroup(Group):
    default = "list"


app = App(
    help="Look inside neural machine translation: train, translate, compare, draw.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
benchmark_app = App(help="Measure speed and memory: of systems, of a trained run, and of the workbench on large data.")
data_app = App(help="Make, import and prepare parallel text; train a word aligner on it.")
experiment_app = App(help="Run grids of systems and seeds; list the systems, and the papers with their numbers.")
open_app = App(help="Open models of other libraries as runs.")
export_app = App(help="Write figures for a paper, an HTML report, or a run in the format of another engine.")
runs_app = App(RunsGroup, help="List the runs (without a command); average their checkpoints; import translations.")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"workbench {version('nmt-workbench')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of `workbench` itself."""


app.add_typer(benchmark_app, name="benchmark")
app.add_typer(data_app, name="data")
app.add_typer(experiment_app, name="experiment")
app.add_typer(export_app, name="export")
app.add_typer(open_app, name="open")
app.add_typer(runs_app, name="runs")


def _runs_of_groups(paths: list[Path]) -> list[Path]:
    """Without what lies beside the runs of a group, so that GROUP/* names them all."""
    from workbench.store.runs import lies_beside_runs

    return [path for path in paths if not lies_beside_runs(path)] or paths


RunPath = Annotated[Path, typer.Argument(help="Run folder")]
RunPaths = Annotated[list[Path], typer.Argument(help="Run folders", callback=_runs_of_groups)]
Device = Annotated[
    str,
    typer.Option(help="Device to compute on: cpu, cuda, cuda:N, or auto: cuda if there is one"),
]
TestName = Annotated[
    str, typer.Option("--test", help="Name of the test set: of the run's prepared data, or already translated")
]
TestNames = Annotated[
    list[str] | None,
    typer.Option("--test", help="Name of a test set, prepared or already translated; may be repeated  [default: test]"),
]
Metrics = Annotated[str, typer.Option(help="Metrics, comma-separated: bleu, chrf, chrf++, ter, meteor")]
RunsRoot = Annotated[Path, typer.Option("--runs", envvar="WORKBENCH_RUNS", help="Folder that holds the runs")]
FigureOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="Option of the figure or table as key=value (NAME --help lists them); may be repeated"
    ),
]
Files = Annotated[
    list[str] | None, typer.Option("--file", help="File that a figure was drawn with, as OPTION=FILE; may be repeated")
]
_NAMED = "workbench.named"  # key in the context of a command
MOST_DIGITS = 19  # of a number of the command line; nothing here needs longer ones
NUMBER_WIDTH = 9  # characters: shorter cells are never broken, longer ones never to less


def pairs(settings: list[str] | None, option: str) -> dict[str, Any]:
    """Parse the key=value pairs of an option into nested mappings, with values read as YAML."""
    from core_models.settings import ConfigError, read_value

    settings_tree: dict[str, Any] = {}
    for setting in settings or []:
        key, sign, value = setting.partition("=")
        if not sign or not key:
            raise ConfigError(f"{option} {setting!r}: write key=value")
        *path, last = key.split(".")
        node = settings_tree
        for part in path:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{option} {setting!r}: {part} was given a value of its own; give one or the other")
        node[last] = read_value(value, f"{option} {setting!r}")
    return settings_tree


class Show(Protocol):
    """Shows progress: of `total` parts `done` are done."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


def _say_nothing(done: int, total: int, note: str = "") -> None:
    """Progress report of a process that is not the first."""


@contextmanager
def bar(description: str) -> Iterator[Show]:
    """A progress bar on a terminal, a line every few seconds elsewhere.

    Only the first of several processes reports.
    """
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    if rank() != 0:
        yield _say_nothing
        return
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(printable_cell(description), total=None, note="")

            def draw(done: int, total: int, note: str = "") -> None:
                progress.update(task, completed=done, total=total, note=printable_cell(note))

            yield draw
        return
    last = [0.0]

    def say(done: int, total: int, note: str = "") -> None:
        if time.monotonic() - last[0] > 2 or done == total:
            last[0] = time.monotonic()
            print(printable_cell(f"{description} {done}/{total} {note}".rstrip()), file=sys.stderr, flush=True)

    yield say


def train_report(show: Show) -> Callable[[Any, int, dict[str, float]], None]:
    def report(progress: Any, total: int, values: dict[str, float]) -> None:
        show(
            progress.step,
            total,
            f"loss {values.get('main_loss', float('nan')):.3f}, {values.get('tokens_per_second', 0):.0f} tokens/s",
        )

    return report


def print_table(table: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    if not sys.stdout.isatty():
        say(table.to_csv(index=False, sep="\t", float_format=_number), nl=False)
        return
    rows = [
        [_number(value) if isinstance(value, float) else printable_cell(str(value)) for value in row]
        for row in table.itertuples(index=False)
    ]
    drawn = Table()
    widths = []
    for position, name in enumerate(printable_cell(str(column)) for column in table.columns):
        widest = max((len(row[position]) for row in rows), default=0)
        # On a narrow terminal text is broken; a number is not, since half of it would be another number.
        short = widest <= NUMBER_WIDTH
        header = name.replace(" ", "\n") if short else name
        widths.append(max(widest, *map(len, header.split("\n"))) if short else NUMBER_WIDTH)
        drawn.add_column(header, min_width=widths[-1], no_wrap=short, overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    needed = 1 + sum(width + 3 for width in widths)  # a column has a rule and two blanks
    Console(width=max(Console().width, needed), markup=False, emoji=False).print(drawn)


def _number(value: float) -> str:
    """With four decimals, or as a power of ten where these would be zero: a p-value is never zero."""
    return f"{value:.1e}" if 0 < abs(value) < 0.00005 else f"{value:.4f}"


def print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts with aligned columns; the last cell of a row may be of any length."""
    if sys.stdout.isatty():
        rows = [[printable_cell(text) for text in row] for row in rows]
    widths: dict[int, int] = {}
    for row in rows:
        for position, text in enumerate(row[:-1]):
            widths[position] = max(widths.get(position, 0), len(text))
    for row in rows:
        *cells, last = row
        say("  ".join([*(text.ljust(widths[position]) for position, text in enumerate(cells)), last]))


def print_options(spec: FigureSpec | AnalysisSpec) -> None:
    """Print what a figure or an analysis shows, and its options."""
    from workbench.figures.options import option_rows

    say(f"{spec.name}: {spec.summary}")
    if spec.options is None:
        say("of another package, which reads its options itself")
    elif rows := option_rows(spec.options):
        print_aligned([["--option", "may be", "default", "what it does"], *rows])
    else:
        say("it has no options")


class NamingCommand(Command):
    """A command whose first argument names a figure or an analysis; its --help behind a name adds the options of it."""

    def spec_of(self, name: str) -> FigureSpec | AnalysisSpec:
        """The named one; raises RunError for an unknown name."""
        raise NotImplementedError

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-"):
            ctx.meta[_NAMED] = args[0]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        spec = self.spec_of(ctx.meta[_NAMED]) if _NAMED in ctx.meta else None
        super().format_help(ctx, formatter)
        if spec is not None:
            print_options(spec)


def comma_list(text: str) -> list[str]:
    """The parts of a text with commas between, without blanks around them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def whole_numbers(text: str, option: str, least: int = 1) -> list[int]:
    """Different whole numbers from `least` on, with commas between."""
    parts = comma_list(text)
    if not parts or not all(part.isdecimal() and len(part) < MOST_DIGITS and int(part) >= least for part in parts):
        refuse(f"{option} {text!r}: write whole numbers from {least}, with commas between")
    return list(dict.fromkeys(map(int, parts)))


BaselineName = Annotated[
    str | None,
    typer.Option("--baseline", help="Baseline run, by its path or the end of its name; the first by default"),
]


def baseline_name(baseline: str | None, paths: Sequence[Path], runs: Sequence[Run]) -> str:
    """The name of the baseline: the first run, or the one that is named so, or typed so on the command line.

    Pages name a run by more or less of its path than commands do, so either name may end in the other.
    """
    if baseline is None:
        return runs[0].name
    from core_models.config import CONFIG, split_reference

    baseline = baseline.rstrip("/")
    folder, _ = split_reference(baseline)
    here = folder.resolve() if os.path.lexists(folder / CONFIG) else None  # then it is this run and no other
    candidates = {
        run.name: str(path) for path, run in zip(paths, runs, strict=True) if here in (None, run.folder.resolve())
    }
    for name, path in candidates.items():
        if baseline in (name, path) or baseline.endswith(f"/{name}"):
            return name
    ending = [name for name in candidates if name.endswith(f"/{baseline}")]
    if len(ending) == 1:
        return ending[0]
    if ending:
        refuse(f"--baseline {baseline}: this may be {' or '.join(ending)}; give more of its path")
    return refuse(f"--baseline {baseline}: it is not among the runs: {', '.join(run.name for run in runs)}")


def need_runs(runs: Sequence[Path] | None) -> None:
    """Refuse a command line that names no run."""
    if not runs:
        refuse("no run is chosen; name at least one (--run RUN)")


def refuse(message: str) -> NoReturn:
    say(f"workbench: {message}", err=True)
    raise SystemExit(2)


def need_folder(file: Path | None, option: str = "") -> None:
    """Refuse an output file whose folder is missing, before any work whose result could not be written."""
    if file is not None and not file.absolute().parent.is_dir():
        refuse(f"{option} {file}: there is no folder {file.parent}; make it, or name another".lstrip())
