"""The command line: thin commands, each calls one function. Heavy imports happen inside: --help is quick."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    help="Look inside neural machine translation: train, translate, compare, draw.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Make, import and prepare parallel text.", no_args_is_help=True)
experiment_app = typer.Typer(help="Run grids of systems and seeds from a YAML file.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(experiment_app, name="experiment")

RunPath = Annotated[Path, typer.Argument(help="A run folder")]
RunPaths = Annotated[list[Path], typer.Argument(help="Run folders")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N")]
TestName = Annotated[
    str, typer.Option("--test", help="A test set of the run's prepared data, or a name already translated")
]
RunsRoot = Annotated[Path, typer.Option("--runs", envvar="WORKBENCH_RUNS", help="The folder that holds the runs")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", "-s", help="key=value, e.g. max_epochs=10 or early_stopping.metric=bleu")
]


def _pairs(settings: list[str] | None) -> dict[str, Any]:
    """key=value options as nested mappings, values read as YAML."""
    import yaml

    from core_models.config import ConfigError

    found: dict[str, Any] = {}
    for setting in settings or []:
        key, sign, value = setting.partition("=")
        if not sign:
            raise ConfigError(f"--set {setting!r}: write key=value")
        *path, last = key.split(".")
        place = found
        for part in path:
            place = place.setdefault(part, {})
        try:
            place[last] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set {setting!r}: the value is not readable as YAML; quote it") from None
    return found


@contextmanager
def _bar(description: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on a terminal, a line every few seconds elsewhere: call it with (done, in all, note)."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(description, total=None, note="")

            def draw(done: int, total: int, note: str = "") -> None:
                progress.update(task, completed=done, total=total, note=note)

            yield draw
        return
    last = [0.0]

    def say(done: int, total: int, note: str = "") -> None:
        if time.monotonic() - last[0] > 2 or done == total:
            last[0] = time.monotonic()
            print(f"{description} {done}/{total} {note}".rstrip(), file=sys.stderr, flush=True)

    yield say


def _train_report(bar: Callable[[int, int, str], None]) -> Callable[[Any, int, dict[str, float]], None]:
    def report(progress: Any, total: int, values: dict[str, float]) -> None:
        bar(
            progress.step,
            total,
            f"loss {values.get('main_loss', float('nan')):.3f}, {values.get('tokens_per_second', 0):.0f} tokens/s",
        )

    return report


@data_app.command("controlled")
def data_controlled(
    out: Annotated[Path, typer.Option(help="Folder to write to")],
    sentences: Annotated[int, typer.Option(help="Training sentences")] = 12000,
    dev: int = 500,
    test: int = 500,
    seed: int = 1,
) -> None:
    """Write the controlled corpus: parallel documents whose truth is known, and the oracles that bound a system."""
    from core_models.text import controlled

    corpus = controlled.generate(sentences, dev, test, seed)
    controlled.write(corpus, out)
    typer.echo(controlled.format_oracles(controlled.oracles(corpus)))


TextFiles = Annotated[str, typer.Option(help="SOURCE,TARGET (plain or .gz), or one FILE.tsv")]


def _read_text(files: str, name: str) -> Any:
    """Parallel text from SOURCE,TARGET or FILE.tsv; `.docids` beside the source are taken along."""
    from core_models.text.parallel import TextError, read_parallel, read_tsv

    source, comma, target = files.partition(",")
    if comma:
        return read_parallel(source, target, name=name)
    if not source.endswith((".tsv", ".tsv.gz")):
        raise TextError(f"{files!r}: write SOURCE,TARGET or FILE.tsv")
    return read_tsv(source, name=name)


@data_app.command("prepare")
def data_prepare(
    train: TextFiles,
    dev: TextFiles,
    out: Annotated[Path, typer.Option(help="Folder to write to")],
    test: Annotated[list[str] | None, typer.Option(help="NAME=SOURCE,TARGET or NAME=FILE.tsv; may be repeated")] = None,
    pieces: Annotated[int, typer.Option(help="Pieces of the vocabulary (of each side's without --joint)")] = 8000,
    kind: Annotated[str, typer.Option(help="unigram or bpe")] = "unigram",
    joint: bool = True,
    languages: Annotated[str, typer.Option(help="e.g. en-de")] = "",
    max_length: int = 256,
    seed: int = 1,
) -> None:
    """Train a SentencePiece vocabulary and binarise parallel text; `.docids` beside a source file are taken along."""
    from core_models.text.binary import prepare

    tests = {}
    for one in test or []:
        name, sign, files = one.partition("=")
        if not sign:
            _refuse(f"--test {one!r}: write NAME=SOURCE,TARGET or NAME=FILE.tsv")
        tests[name] = _read_text(files, name)
    source_language, _, target_language = languages.partition("-")
    prepared = prepare(
        out,
        _read_text(train, "train"),
        _read_text(dev, "dev"),
        tests,
        pieces,
        kind,
        joint,
        source_language,
        target_language,
        max_length,
        seed=seed,
    )
    for name, split in prepared.manifest["splits"].items():
        typer.echo(
            f"{name}: {split['sentences']} sentences, {split['source_tokens']} + {split['target_tokens']} pieces, "
            f"left out {split['left_out']}"
        )


@data_app.command("import")
def data_import(
    name: Annotated[str, typer.Argument(help="sacrebleu:wmt14, or a Hugging Face data set by name or local path")],
    pair: Annotated[str, typer.Option(help="e.g. en-de")],
    out: Annotated[Path, typer.Option(help="Prefix of the files to write")],
    split: str = "train",
) -> None:
    """Write a test set of sacreBLEU or a translation set of Hugging Face `datasets` as plain parallel text."""
    from core_models.text.imports import import_huggingface, import_sacrebleu
    from core_models.text.parallel import write_lines

    source, _, target = pair.partition("-")
    kind, _, test_set = name.partition(":")
    text = import_sacrebleu(test_set, pair) if kind == "sacrebleu" else import_huggingface(name, source, target, split)
    out.parent.mkdir(parents=True, exist_ok=True)
    for language, lines in ((source, text.sources), (target, text.targets), ("docids", text.documents)):
        if lines is not None:
            write_lines(Path(f"{out}.{language}"), lines)
    typer.echo(f"{len(text)} sentence pairs: {out}.{source}, {out}.{target}")


@app.command()
def train(
    system: Annotated[
        str, typer.Argument(help="A system of the catalogue, e.g. future-cost-2:preset=small,weight=0.7")
    ],
    data: Annotated[Path, typer.Option(help="Folder written by `workbench data prepare`")],
    out: Annotated[Path, typer.Option(help="The run folder to make")],
    settings: Settings = None,
    search: Annotated[list[str] | None, typer.Option(help="key=value of the search, e.g. beam=5")] = None,
    init_from: Annotated[str | None, typer.Option(help="A run, or RUN@step, to begin from")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes; resume later")] = None,
    device: Device = "auto",
) -> None:
    """Train a system into a new run folder."""
    from workbench.training import new_run
    from workbench.training import train as train_run

    training = {"max_epochs": 10, **_pairs(settings)}
    if "max_steps" in training and "max_epochs" not in _pairs(settings):
        del training["max_epochs"]
    if init_from:
        training["init_from"] = init_from
    run = new_run(out, system, data, training, _pairs(search))
    with _bar(f"training {run.name}") as bar:
        _say_end(train_run(run, _train_report(bar), device, minutes), out)


@app.command()
def resume(
    run: RunPath,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes")] = None,
    device: Device = "auto",
) -> None:
    """Go on training a run from its last state."""
    from workbench.runs import open_run
    from workbench.training import train as train_run

    opened = open_run(run)
    with _bar(f"training {opened.name}") as bar:
        _say_end(train_run(opened, _train_report(bar), device, minutes), run)


def _say_end(progress: Any, run: Path) -> None:
    typer.echo(
        f"step {progress.step}, epoch {progress.epoch}, {progress.seconds:.0f} s, best at step {progress.best_step}"
        + (f" ({progress.reason})" if progress.finished else f"; not finished: workbench resume {run}")
    )
    if progress.unmatched:
        typer.echo(f"not matched by init_from, freshly initialised: {', '.join(progress.unmatched)}")


@app.command()
def average(
    run: RunPath,
    last: Annotated[int, typer.Option(help="How many of the latest checkpoints")] = 5,
    use: Annotated[bool, typer.Option(help="Make the average the run's weights")] = False,
) -> None:
    """Average the last checkpoints of a run into RUN@average-N."""
    import shutil

    from core_models.checkpoint import WEIGHTS
    from core_models.checkpoint import average as average_checkpoints

    if last < 1:
        _refuse(f"--last {last}: at least one checkpoint makes an average")
    by_step = sorted(
        (run / "checkpoints").glob("step-*.safetensors"), key=lambda path: int(path.stem.removeprefix("step-"))
    )
    found = by_step[-last:]
    path = run / "checkpoints" / f"average-{len(found)}.safetensors"
    average_checkpoints(found, path)
    if use:
        shutil.copyfile(path, run / f"{WEIGHTS}.part")
        os.replace(run / f"{WEIGHTS}.part", run / WEIGHTS)
    typer.echo(f"{path}: mean of {', '.join(one.stem for one in found)}")


@app.command()
def translate(
    runs: RunPaths,
    test: Annotated[str | None, typer.Option(help="A test set of the prepared data")] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="A file of sentences; - for standard input")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where translations of --input go")] = None,
    prefix: Annotated[str | None, typer.Option(help="What every translation must begin with")] = None,
    beam: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    samples: Annotated[int, typer.Option(help="Draw so many translations of each sentence instead of searching")] = 0,
    temperature: Annotated[float, typer.Option(help="Of the draws")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the draws")] = 1,
    trees: Annotated[bool, typer.Option(help="Record beam-search trees (with --test)")] = False,
    ensemble: Annotated[bool, typer.Option(help="Decode --input with all the runs together")] = False,
    device: Device = "cpu",
) -> None:
    """Translate a test set into each run's folder, or a file of sentences."""
    if (test is None) == (input is None):
        _refuse("give either --test NAME or --input FILE")
    if test is not None:
        _translate_test(runs, test, trees, device, beam=beam, length_penalty=length_penalty, n_best=n_best)
        return
    import core_models
    from core_models.text.parallel import read_lines, write_lines

    if len(runs) > 1 and not ensemble:
        _refuse("several runs translate one file only as an --ensemble")
    lines = _standard_input() if str(input) == "-" else read_lines(input)  # type: ignore[arg-type]
    translator = core_models.load(runs[0] if len(runs) == 1 else list(runs), device)
    if samples:
        texts = [one.text for drawn in translator.sample(lines, samples, temperature, seed=seed) for one in drawn]
    else:
        prefixes = None if prefix is None else [prefix] * len(lines)
        found = translator.translate(lines, beam=beam, length_penalty=length_penalty, n_best=n_best, prefix=prefixes)
        texts = [one.text for translation in found for one in (translation, *translation.n_best)]
    if output is None:
        typer.echo("\n".join(texts))
    else:
        write_lines(output, texts)


def _standard_input() -> list[str]:
    """Lines of standard input, UTF-8 whatever the locale; an empty last line counts as one, as in a file."""
    text = sys.stdin.buffer.read().decode("utf-8")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _translate_test(runs: list[Path], test: str, trees: bool, device: str, **search: Any) -> None:
    from workbench.evaluation import test_set, translate_test
    from workbench.runs import open_run

    for path in runs:
        run = open_run(path)
        wanted, truth = test_set(run, test)
        with _bar(f"translating {test} with {run.name}") as bar:
            done = translate_test(
                run, wanted, truth, trees, device, step=lambda done, total: bar(done, total, ""), **search
            )
        typer.echo(f"{done.folder}: {len(done)} sentences in {done.meta['seconds']} s", err=True)


@app.command()
def score(
    run: RunPath,
    source: Annotated[Path, typer.Option(help="Source sentences")],
    target: Annotated[Path, typer.Option(help="Translations to score")],
    device: Device = "cpu",
) -> None:
    """Force-decode given translations: one line each with its log-probability (nats) and its number of tokens."""
    import core_models
    from core_models.text.parallel import read_parallel

    text = read_parallel(source, target)
    for one in core_models.load(run, device).score(text.sources, text.targets or []):
        typer.echo(f"{one.log_prob:.4f}\t{len(one.tokens)}")


@app.command()
def evaluate(
    runs: RunPaths, test: TestName = "test", metrics: str = "bleu,chrf,ter", samples: int = 1000, device: Device = "cpu"
) -> None:
    """Score translations of a test set, translating first where that is still to do. Intervals: 95 % bootstrap."""
    from workbench.evaluation import score_table
    from workbench.runs import open_runs

    wanted = _metrics(metrics)
    opened = open_runs(runs)
    missing = [run.folder for run in opened if test not in run.tests()]
    if missing:
        _translate_test(missing, test, False, device)
    _print_table(score_table(opened, test, wanted, samples))


def _metrics(text: str) -> list[str]:
    from analyses.scores import METRICS
    from core_models.config import nearest

    found = text.split(",")
    unknown = [name for name in found if name not in METRICS]
    if unknown:
        _refuse(f"there is no metric {unknown[0]!r}; {nearest(unknown[0], METRICS)}")
    return found


@app.command()
def compare(
    runs: RunPaths,
    test: TestName = "test",
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline run; the first by default")] = None,
    method: Annotated[str, typer.Option(help="bootstrap, randomization or sign")] = "bootstrap",
    metrics: str = "bleu",
) -> None:
    """Test runs against a baseline on the same test set; p-values also after Holm's correction."""
    from workbench.evaluation import TESTS, comparison_table
    from workbench.runs import open_runs

    if method not in TESTS:
        _refuse(f"--method {method!r}: choose {', '.join(TESTS)}")
    opened = open_runs(runs)
    _print_table(comparison_table(opened, test, baseline or opened[0].name, method, _metrics(metrics)))


@app.command()
def trace(
    run: RunPath,
    test: TestName = "test",
    names: Annotated[str, typer.Option(help="Arrays or patterns, with commas between")] = "*",
    sentences: Annotated[str, typer.Option(help="e.g. 0-9,17; all when missing")] = "",
    device: Device = "cpu",
) -> None:
    """Force a run's own translations of a test set and keep what happened inside (attention, gates, costs, ...)."""
    from workbench.evaluation import trace_test
    from workbench.runs import open_run

    opened = open_run(run)
    rows = [number for part in filter(None, sentences.split(",")) for number in _range(part)] or None
    with _bar(f"tracing {test}") as bar:
        folder = trace_test(
            opened,
            opened.translations(test),
            names.split(","),
            rows,
            device,
            step=lambda done, total: bar(done, total, ""),
        )
    typer.echo(str(folder))


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        _refuse(f"--sentences {part!r}: write numbers from 0 such as 3 or 0-9")
    return range(int(first), int(last or first) + 1)


@app.command("runs")
def runs_command(root: RunsRoot = Path("runs")) -> None:
    """List the runs below a folder, broken ones with their reason."""
    from workbench.runs import list_runs

    for run in list_runs(root):
        if run.problem:
            typer.echo(f"{run.name:40} broken: {run.problem}")
        else:
            state = "trained" if run.trained else "not trained"
            typer.echo(f"{run.name:40} {run.system:40} {state:12} tests: {', '.join(run.tests()) or 'none'}")


@app.command()
def systems(
    sizes: Annotated[bool, typer.Option(help="Also count parameters (a vocabulary of 8,000 pieces)")] = False,
) -> None:
    """List the catalogue; change any of them as NAME:key=value,key=value."""
    from core_models.systems import SYSTEMS, build, parameters

    for name, entry in SYSTEMS.items():
        counts = parameters(build(name)) if sizes else {}
        typer.echo(
            f"{name:16} {entry.title:26} {entry.paper:34}"
            + "".join(f" {key.replace('_', ' ')} {value:,}" for key, value in counts.items())
        )


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="What to draw; `workbench figure list` names all")],
    run: Annotated[list[Path] | None, typer.Option(help="Run folders, the baseline first")] = None,
    out: Annotated[
        Path, typer.Option(help="figure.pdf, .svg, .png, .csv or .json; a folder gets all of them and a .tex")
    ] = Path("figure.pdf"),
    test: TestName = "test",
    sentence: Annotated[int, typer.Option(help="Counting from 0")] = 0,
    settings: Settings = None,
    width: Annotated[str | None, typer.Option(help="column, page, or inches")] = None,
) -> None:
    """Draw what a page shows, into a file."""
    from workbench.drawing import DRAWINGS, Request, draw
    from workbench.runs import open_runs

    if name == "list":
        typer.echo("\n".join(DRAWINGS))
        return
    opened = open_runs(run or [])
    from workbench.export.files import DRAWN, WRITTEN, bundle, save

    if out.suffix and out.suffix.lower() not in (*DRAWN, *WRITTEN):
        _refuse(f"--out {out}: a figure is written as {', '.join((*DRAWN, *WRITTEN))}, or into a folder; choose one")
    drawn = draw(name, Request(tuple(opened), test, sentence, options=_pairs(settings)))
    size = float(width) if width and width.replace(".", "", 1).isdigit() else width
    written = [save(drawn, out, size)] if out.suffix else bundle(drawn, out, size)
    typer.echo("\n".join(map(str, written)))


@app.command()
def bench(
    systems: Annotated[list[str] | None, typer.Argument(help="Systems of the catalogue, the baseline first")] = None,
    precision: Annotated[str, typer.Option(help="float32 or bfloat16")] = "float32",
    device: Device = "cpu",
    threads: Annotated[int, typer.Option(help="Threads of PyTorch; 0 leaves its own choice")] = 0,
    steps: Annotated[int, typer.Option(help="Training steps that are timed")] = 12,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON record a system, without ratios")] = False,
) -> None:
    """Measure systems on one shape: parameters, multiply-adds, speed, memory; ratios to the first beside their ceilings.

    Each is measured in a process of its own, one after the other. Speeds hold for a quiet machine.
    """
    names = systems or ["transformer", "future-cost-1", "future-cost-2"]
    if as_json:
        from workbench.bench import Shape, measure

        for name in names:
            typer.echo(json.dumps(measure(name, Shape(steps=steps), precision, device, threads=threads)))
        return
    import pandas as pd

    from workbench.bench import measure_apart, ratios

    measured = [measure_apart(name, precision, device, threads, steps) for name in names]
    _print_table(pd.DataFrame(ratios(measured)).set_index("system").T.reset_index(names="what"))


ExperimentFile = Annotated[Path, typer.Argument(help="e.g. data/experiments/multi30k-en-de.yaml")]


@experiment_app.command("run")
def experiment_run(
    file: ExperimentFile,
    data: Annotated[Path | None, typer.Option(help="Folder of the files that it names")] = None,
    root: RunsRoot = Path("runs"),
    minutes: Annotated[float | None, typer.Option(help="For each training, in this call")] = None,
    device: Device = "auto",
) -> None:
    """Train, translate and trace every cell that is not done; can be stopped and started again at any time."""
    from workbench.experiments import read_experiment, run_experiment

    experiment = read_experiment(file)
    with _bar(experiment.name) as bar:

        def report(name: str) -> Callable[[Any, int, dict[str, float]], None]:
            return lambda progress, total, values: bar(
                progress.step, total, f"{name}, loss {values.get('main_loss', float('nan')):.3f}"
            )

        run_experiment(experiment, root, data, typer.echo, report, device, minutes)


@experiment_app.command("status")
def experiment_status(file: ExperimentFile, root: RunsRoot = Path("runs")) -> None:
    """Say how far each cell is."""
    from workbench.experiments import cells, read_experiment

    for cell in cells(read_experiment(file), root):
        typer.echo(f"{cell.folder}: {cell.state}")


@experiment_app.command("table")
def experiment_table(
    file: ExperimentFile,
    root: RunsRoot = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="CSV file to write")] = None,
) -> None:
    """Scores of all cells that are done; the others stand there with their state."""
    from workbench.experiments import read_experiment, table

    found = table(read_experiment(file), root)
    _print_table(found)
    if out is not None:
        found.to_csv(out, index=False, float_format="%.4f")


@app.command()
def demo(root: RunsRoot = Path("runs"), device: Device = "cpu") -> None:
    """Train, translate and trace the demo's systems on the controlled corpus; what is there already stays."""
    from workbench.demo import build

    with _bar("demo") as bar:
        build(root, say=typer.echo, report=lambda name, done, total: bar(done, total, name), device=device)


@app.command("app")
def app_command(
    root: RunsRoot = Path("runs"),
    port: int = 8501,
    host: Annotated[
        str, typer.Option(help="There is no login: anything but the loopback address lets others in")
    ] = "127.0.0.1",
    demo: Annotated[bool, typer.Option(help="Build the demo first where there is no run yet")] = False,
) -> None:
    """Open the workbench in the browser."""
    from workbench.demo import build
    from workbench.runs import list_runs

    if demo and not list_runs(root):
        with _bar("demo") as bar:
            build(root, say=typer.echo, report=lambda name, done, total: bar(done, total, name))
    if host != "127.0.0.1":
        typer.echo(f"warning: listening on {host}; everybody who reaches this address can use the workbench", err=True)
    typer.echo(f"The workbench is at http://{host}:{port}")
    hosts = [
        part for name in dict.fromkeys(("localhost", "127.0.0.1", host)) for part in ("--server.allowedHosts", name)
    ]
    arguments = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(_app_file()),
        "--server.address",
        host,
        "--server.port",
        str(port),
        *hosts,
        "--browser.gatherUsageStats",
        "false",
        "--server.headless",
        "false" if _has_display() else "true",
        "--server.showEmailPrompt",
        "false",
        "--server.fileWatcherType",
        "none",
    ]
    os.execve(sys.executable, arguments, {**os.environ, "WORKBENCH_RUNS": str(root.resolve())})


def _has_display() -> bool:
    """Is there a desktop on which a browser can be opened?"""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _app_file() -> Path:
    """app.py: beside this package in the wheel, at the top of a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "app.py"
    return inside if inside.is_file() else package.parent / "app.py"


def _print_table(table: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    if not sys.stdout.isatty():
        typer.echo(table.to_csv(index=False, sep="\t", float_format="%.4f"), nl=False)
        return
    drawn = Table(*table.columns)
    for row in table.itertuples(index=False):
        drawn.add_row(*[f"{value:.4f}" if isinstance(value, float) else str(value) for value in row])
    Console().print(drawn)


def _refuse(message: str) -> NoReturn:
    typer.echo(f"workbench: {message}", err=True)
    raise SystemExit(2)


# Errors that are a sentence for the user, by name, so that none of their modules is imported for --help.
SENTENCES = {
    "TextError",
    "ConfigError",
    "CheckpointError",
    "RunError",
    "TranslatorError",
    "TrainingError",
    "MissingGlyphs",
}
ALLOCATING = {"train", "resume", "demo", "experiment", "bench"}


def main() -> None:
    """The `workbench` command."""
    from core_models.resources import allocator_settings

    if (
        sys.platform == "linux"
        and ALLOCATING.intersection(sys.argv[1:2])
        and "MALLOC_TRIM_THRESHOLD_" not in os.environ
    ):
        os.execve(
            sys.executable,
            [sys.executable, "-m", "workbench.cli", *sys.argv[1:]],
            {**os.environ, **allocator_settings()},
        )
    try:
        app()
    except SystemExit as end:
        if end.code == 130:  # what typer makes of Ctrl-C
            typer.echo("\nstopped; nothing is half-written, and a run in training can be resumed", err=True)
        raise
    except Exception as error:
        if type(error).__name__ not in SENTENCES or os.environ.get("WORKBENCH_DEBUG"):
            raise
        _refuse(str(error))


if __name__ == "__main__":
    main()
