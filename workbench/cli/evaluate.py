"""workbench evaluate and compare."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.arrays import (
    AT_ONCE,
    CPUS,
    GPUS,
    LOCAL,
    SLURM_TIME,
    TASKS,
    AtOnce,
    Cluster,
    Cpus,
    Gpus,
    JobParameters,
    Launcher,
    Partition,
    SlurmTime,
    Tasks,
    array_settings,
    submit_works,
)
from workbench.cli.numbers import Resamples
from workbench.cli.shared import (
    BaselineName,
    Device,
    Metrics,
    RunPaths,
    TestNames,
    app,
    baseline_name,
    print_table,
    refuse,
)
from workbench.cli.terminal import say
from workbench.cli.translate import ENGINES, Search, check_engine, search_changes, translate_test_set, translating
from workbench.evaluation.distributed import rank

if TYPE_CHECKING:
    import pandas as pd

    from workbench.evaluation.dealt import Work
    from workbench.evaluation.scoring import Counting
    from workbench.store.runs import Run

TEST = "test"  # the default test set


def check_preset(name: str) -> str:
    from analyses.scores import FORMER_PRESETS, PRESETS
    from core_models.settings import nearest

    if name == "list":
        say("\n".join(f"{preset:16} {PRESETS[preset].description}" for preset in PRESETS))
        say("TER ignores case and tokenizes by its own rules under each.")
        raise typer.Exit
    name = FORMER_PRESETS.get(name, name)
    if name not in PRESETS:
        refuse(f"--preset {name!r}: no such preset; {nearest(name, list(PRESETS))}")
    return name


Preset = Annotated[
    str,
    typer.Option(
        help="Metric settings (case, tokenizer, a paper's own); `list` names all",
        callback=check_preset,
        is_eager=True,  # so that `list` needs no runs
    ),
]
Reference = Annotated[
    int, typer.Option(help="Number of the reference to score against, from 1; 0 for all together", min=0)
]


OtherEngine = Annotated[
    str | None,
    typer.Option("--engine", help="Engine of the search, as of translate; by default, any that has translated it"),
]


@app.command()
def evaluate(
    runs: RunPaths,
    test: TestNames = None,
    metrics: Metrics = "bleu,chrf,ter",
    n_resamples: Resamples = 1000,
    processes: Annotated[
        int, typer.Option(help="Number of processes that share the scoring of a large test set", min=1, max=1024)
    ] = 1,
    preset: Preset = "default",
    reference: Reference = 0,
    search: Search = None,
    engine: OtherEngine = None,
    device: Device = "cpu",
    launcher: Launcher = LOCAL,
    tasks: Tasks = TASKS,
    cluster: Cluster = None,
    partition: Partition = None,
    slurm_time: SlurmTime = SLURM_TIME,
    gpus: Gpus = GPUS,
    cpus: Cpus = CPUS,
    at_once: AtOnce = AT_ONCE,
    job: JobParameters = None,
) -> None:
    """Score translations of test sets, translating first where needed; intervals are 95% bootstrap.

    A test set is translated if it has no translation yet, or one with other settings than those of --search or by
    another engine than --engine. With --launcher submitit tasks of an array translate and count; once all is done, the
    same command prints the table.
    """
    from workbench.evaluation.dealt import Statistics
    from workbench.evaluation.scoring import Counting, metric_names
    from workbench.store.runs import open_runs
    from workbench.views.scores.test_sets import score_table

    names, changes = metric_names(metrics), search_changes(search)
    check_engine(engine or ENGINES[0])
    run_list, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    counting = Counting(preset, reference)
    settings = array_settings(launcher, cluster, partition, slurm_time, gpus, cpus, at_once, job, tasks)
    if settings is not None:
        if engine not in (None, ENGINES[0]):
            refuse(f"--engine {engine} is for one process: leave --launcher out")
        works: dict[str, list[Work]] = {run.reference: [] for run in run_list}
        for run, name in itertools.product(run_list, tests):
            if _has_translation_by(run, name, changes, engine):
                works[run.reference].append(Statistics(name, names, counting))
            else:
                translation = translating(name, tasks, device, settings, **changes)
                works[run.reference].append(replace(translation, metrics=names, counting=counting))
        if submit_works(works, "evaluate", settings):
            return
    for name in tests:
        missing = [Path(run.reference) for run in run_list if not _has_translation_by(run, name, changes, engine)]
        if missing:
            translate_test_set(missing, name, False, device, engine or ENGINES[0], **changes)
    if rank() == 0:
        print_table(_without_single_test(tests, score_table(run_list, tests, names, n_resamples, processes, counting)))


def _has_translation_by(run: Run, test: str, changes: dict[str, Any], engine: str | None) -> bool:
    """Return True if a run has translated a test set by a search with these settings, by the engine if one is named."""
    from core_models.config import SearchConfig

    if test not in run.tests():
        return False
    meta = run.translations(test).meta
    if engine not in (None, meta.get("engine", ENGINES[0])):
        return False
    search = SearchConfig.by_current_names(meta.get("search", {}))
    settings = {**SearchConfig().model_dump(), **search}
    return all(value is None or settings[key] == value for key, value in changes.items())


def _without_single_test(tests: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """The table, without the column of test sets if there is only one."""
    return table if len(tests) > 1 else table.drop(columns="test")


@app.command()
def compare(
    runs: RunPaths,
    test: TestNames = None,
    baseline: BaselineName = None,
    method: Annotated[
        str,
        typer.Option(help="Significance test: bootstrap, randomization, sign or bootstrap-sacrebleu (its rule for p)"),
    ] = "bootstrap",
    metrics: Metrics = "bleu",
    preset: Preset = "default",
    reference: Reference = 0,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the scores as a LaTeX table (booktabs) instead")
    ] = False,
) -> None:
    """Test runs against a baseline on the same test sets; p also after Holm's correction, for each metric by itself."""
    from workbench.evaluation.scoring import Counting, check_method, metric_names
    from workbench.store.runs import open_runs
    from workbench.store.search_settings import search_note
    from workbench.store.training_logs import precision_note
    from workbench.views.scores.test_sets import comparison_table

    if rank() != 0:
        return  # the comparison is not distributed
    check_method(method)
    if len(runs) < 2:
        refuse(f"{runs[0]} alone cannot be compared; name the baseline and at least one other run")
    run_list, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    for name in tests:
        for run in run_list:
            run.translations(name)  # raises with the command that translates it, if missing
    counting, names = Counting(preset, reference), metric_names(metrics)
    base = baseline_name(baseline, runs, run_list)
    comparisons = _without_single_test(tests, comparison_table(run_list, tests, base, method, names, counting))
    if latex:
        say(_latex(run_list, tests, names, counting, comparisons, base))
    else:
        print_table(comparisons)
    for note in (precision_note(run_list), search_note(run_list, tests)):
        if note:
            say(note, err=True)


def _latex(
    runs: list[Run], tests: list[str], metrics: list[str], counting: Counting, comparisons: pd.DataFrame, baseline: str
) -> str:
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.export.latex import score_table_latex
    from workbench.views.scores.test_sets import score_table, with_means

    scores = _without_single_test(tests, with_means(score_table(runs, tests, metrics, counting=counting)))
    scores, comparisons = (
        table.assign(metric=table["metric"].replace(METRIC_NAMES)) for table in (scores, comparisons)
    )
    return score_table_latex(scores, comparisons, baseline)
