"""workbench experiment run, status, table and systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.arrays import (
    AT_ONCE,
    CPUS,
    GPUS,
    LOCAL,
    SLURM_TIME,
    AtOnce,
    Cluster,
    Cpus,
    Gpus,
    JobParameters,
    Launcher,
    Partition,
    SlurmTime,
    array_settings,
)
from workbench.cli.numbers import MaxMinutes, Resamples
from workbench.cli.shared import (
    Device,
    Metrics,
    RunsRoot,
    bar,
    comma_list,
    experiment_app,
    print_aligned,
    print_table,
    refuse,
)
from workbench.cli.terminal import say

ExperimentFile = Annotated[Path, typer.Argument(help="Experiment file, e.g. data/experiments/controlled.yaml")]
Only = Annotated[
    list[str] | None, typer.Option(help="Folder name of a cell to run, e.g. transformer.seed-2; may be repeated")
]


@experiment_app.command("run")
def experiment_run(
    file: ExperimentFile,
    data: Annotated[Path | None, typer.Option(help="Folder of the text files that the experiment names")] = None,
    root: RunsRoot = Path("runs"),
    max_minutes: MaxMinutes = None,
    device: Device = "auto",
    only: Only = None,
    processes: Annotated[
        int,
        typer.Option(min=1, max=1024, help="Number of processes on each device; on a CPU they share its processors"),
    ] = 1,
    devices: Annotated[
        str | None, typer.Option(help="Devices with a process each, comma-separated, e.g. cuda:0,cuda:1")
    ] = None,
    launcher: Launcher = LOCAL,
    cluster: Cluster = None,
    partition: Partition = None,
    slurm_time: SlurmTime = SLURM_TIME,
    gpus: Gpus = GPUS,
    cpus: Cpus = CPUS,
    at_once: AtOnce = AT_ONCE,
    job: JobParameters = None,
) -> None:
    """Train, translate and trace every cell that is not done; can be stopped and started again at any time.

    With --launcher submitit the array has a task for each cell.
    """
    from workbench.experiments import launcher as launching
    from workbench.experiments.grid import read_experiment
    from workbench.experiments.runner import run_experiment

    chosen = only or []
    settings = array_settings(launcher, cluster, partition, slurm_time, gpus, cpus, at_once, job)
    if settings is not None:
        if devices or processes > 1:
            refuse("--devices and --processes are for this machine; a job of submitit works on one cell")
        launching.submit(file, root, data, say, settings, device, max_minutes, chosen)
        return
    experiment = read_experiment(file)
    with bar(experiment.name) as show:
        if devices or processes > 1:
            from core_models.devices import resolved

            job_devices = [name_ for name_ in comma_list(devices or resolved(device)) for _ in range(processes)]
            launching.run_in_processes(file, root, data, job_devices, say, show, max_minutes, chosen)
            return

        def report(name: str) -> Callable[[Any, int, dict[str, float]], None]:
            return lambda progress, total, values: show(
                progress.step, total, f"{name}, loss {values.get('main_loss', float('nan')):.3f}"
            )

        run_experiment(experiment, root, data, say, report, device, max_minutes, chosen)


@experiment_app.command("status")
def experiment_status(file: ExperimentFile, root: RunsRoot = Path("runs")) -> None:
    """Say how far each cell is."""
    from workbench.experiments.grid import cells, read_experiment

    for cell in cells(read_experiment(file), root):
        say(f"{cell.folder}: {cell.state_text()}")


@experiment_app.command("table")
def experiment_table(
    file: ExperimentFile,
    root: RunsRoot = Path("runs"),
    metrics: Metrics = "bleu,chrf",
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline system; the first by default")] = None,
    checkpoint: Annotated[
        list[int] | None,
        typer.Option(help="Step of a checkpoint to tabulate as well, where it is translated; may be repeated"),
    ] = None,
    n_resamples: Resamples = 1000,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write NAME.cells.csv, NAME.scores.csv, NAME.comparisons.csv, NAME.additivity.csv (whether "
            "gains of combinations add), NAME.pairs.csv (differences of every two systems), NAME.lengths.csv "
            "(differences by length of the source) and NAME.dev-losses.csv to"
        ),
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option(
            help="File of statistics per segment (.npz): cells that are done here are added to it, those of "
            "other machines count from it"
        ),
    ] = None,
) -> None:
    """Means over seeds with their intervals, differences to the baseline, and which cells are missing."""
    from workbench.evaluation.scoring import metric_names
    from workbench.experiments import results, table_text
    from workbench.experiments.cell_statistics import update_kept
    from workbench.experiments.grid import read_experiment

    names, experiment = metric_names(metrics), read_experiment(file)
    kept = None if segments is None else update_kept(experiment, root, segments, names)
    scores, comparisons = results.seed_tables(experiment, root, names, checkpoint or [], baseline, n_resamples, kept)
    if len(scores):
        print_table(table_text.readable(scores, comparisons, len(experiment.seeds)))
    additivity = results.additivity(experiment, root, names, baseline, n_resamples, kept)
    if len(additivity):
        print_table(table_text.readable_additivity(additivity))
    for remark in table_text.remarks(experiment, root, kept):
        say(remark, err=True)
    if csv is not None:
        cells = results.cell_table(experiment, root, names, kept, csv)
        pairs = results.pair_differences(experiment, root, names, n_resamples, kept)
        lengths = results.length_differences(experiment, root, names, baseline, n_resamples, kept)
        losses = results.dev_loss_table(experiment, root, csv)
        tables = {"cells": cells, "scores": scores, "comparisons": comparisons, "additivity": additivity}
        tables |= {"pairs": pairs, "lengths": lengths, "dev-losses": losses}
        written = results.write_csv(experiment, csv, tables)
        say("\n".join(map(str, written)))


@experiment_app.command("exhibits")
def experiment_exhibits(
    out: Annotated[Path, typer.Option(help="Folder to write the weights and archives to")],
    root: RunsRoot = Path("runs"),
    file: Annotated[
        list[Path] | None, typer.Option(help="Experiment file, repeatable; by default those of the package's exhibits")
    ] = None,
) -> None:
    """Round the weights of finished grids to half precision and pack their runs for a fresh installation to show.

    Stored with them: the cards and findings of the page Start, what the pages Adequacy, Beam sizes, Reranking and
    Contrastive evaluation show, and the measures of their checkpoints, which are left out.
    """
    from workbench.experiments.exhibits import grid_files, pack
    from workbench.views.adequacy.word_coverage import store_counts
    from workbench.views.beam_size.measure import store_sizes
    from workbench.views.contrastive.measure import store_controlled
    from workbench.views.layer_routing.corpus_figures import store_history
    from workbench.views.reranking.measure import store_lists
    from workbench.views.start.findings import store

    stores = store_controlled, store_sizes, store_lists, store_history, store_counts, store
    for grid_file in file or grid_files():
        say(pack(grid_file, root, out, say, stores))


@experiment_app.command("systems")
def experiment_systems(
    sizes: Annotated[bool, typer.Option(help="Count parameters too (for a vocabulary of 8,000 subwords)")] = False,
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
